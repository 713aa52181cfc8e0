"""What devices send: messages for others, answers, subscriptions and reports about themselves.

Messages are taken strictly in the order of their numbers, and acknowledged when what they caused is
durable.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, TypeVar

import msgspec

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.core.contacts.refusal import refuse
from lasthop.core.contacts.replies import answered
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.effects import Send, SentElsewhere
from lasthop.core.feature import Arrival, Operate
from lasthop.core.lane_set import Lanes
from lasthop.core.names import check_topic, parse_target
from lasthop.core.publishing.acceptance import Acceptance
from lasthop.core.publishing.copying import maker
from lasthop.core.publishing.submission import Submission
from lasthop.core.quota import CallerQuota
from lasthop.core.session import Session
from lasthop.errors import (
    CreditExceeded,
    InvalidRequest,
    LasthopError,
    QuotaExceeded,
)
from lasthop.events import Kind
from lasthop.message import (
    DEFAULT_CONTENT_TYPE,
    Handling,
    Message,
    Reliability,
    Target,
    TargetKind,
    key_time,
)
from lasthop.wire.hop.frames import (
    Ack,
    Frame,
    Headers,
    LaneFrame,
    Last,
    MessageFrame,
    Operation,
    Skip,
)

FRAME_COST = 128
"""Bytes that even an empty message takes in memory, more or less."""

T = TypeVar("T")
_NO_HEADERS = Headers()
_decode_context = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number that fits into a column of the log."""
_decode_read = msgspec.json.Decoder(dict[str, _Count]).decode

OTHERWISE = frozenset({"content_type", "in_reply_to", "correlation", "answer", "stream", "pull"})
"""Headers that are not simply copied into a submission: the first four depend on one another, the
stream feature reads `stream`, and `pull` is ignored because a device always sends its body."""

FROM_DEVICES = {"headers": "extra"} | {
    name: name
    for name in Submission.__struct_fields__
    if name in Headers.__struct_fields__ and name not in OTHERWISE
}
"""By field of a submission, the header of a device's message that the field is copied from."""

_submission_of = maker(
    Submission,
    FROM_DEVICES,
    (
        "target",
        "body",
        "content_type",
        "deliver_before",
        "delay_tolerance",
        "in_reply_to",
        "correlation",
        "reply_before",
        "answer",
        "unsaid",
    ),
)


class DeviceMessages:
    """Carries out the operations that devices ask for by messages."""

    def __init__(
        self, deliveries: Deliveries, acceptance: Acceptance, quota: CallerQuota | None = None
    ) -> None:
        self._deliveries = deliveries
        self._quota = quota
        self._moments = deliveries.moments
        self._acceptance = acceptance
        self._operations: dict[int, Operate] = {
            Operation.DATA: self._publish,
            Operation.REPLY: self._reply,
            Operation.READ: self._read,
        }

    def message(self, session: Session, frame: MessageFrame, now: Micros) -> None:
        """Handle one message that a device sent: a message out of order waits, and a repeated
        message is only acknowledged again."""
        within = self._charge(session, len(frame.body))
        if frame.seq is None:
            # Best effort: nobody waits for it, so what exceeds the window is dropped without an
            # error.
            if within:
                self._act(session, frame, now)
            return
        if not within:
            raise CreditExceeded("more is unacknowledged than the window allows")
        if frame.lane and session.lanes is not None:
            for ready in session.lanes.inbound.message(frame):
                self._act(session, ready, now)
            self._lanes_changed(session, session.lanes, now)
            return
        for ready in session.lane.inbound.receive(frame.seq, frame):
            self._act(session, ready, now)
        self._acknowledge(session, now)

    def lane_frame(self, session: Session, frame: LaneFrame, now: Micros) -> None:
        """Handle what the device says of a lane of its own: numbers without a message, or the
        lane's end."""
        lanes = session.lanes
        if lanes is None:
            return
        if isinstance(frame.frame, Skip):
            for ready in lanes.inbound.skip(frame.lane, frame.frame):
                self._act(session, ready, now)
        elif isinstance(frame.frame, Last):
            ack = lanes.inbound.last(frame.lane, frame.frame.number)
            said = partial(self._say, session, session.contacts, [LaneFrame(frame.lane, ack)])
            self._lanes_changed(session, lanes, now)
            self._deliveries.commits.when_durable(said)
            return
        self._lanes_changed(session, lanes, now)

    def _lanes_changed(self, session: Session, lanes: Lanes[Delivery], now: Micros) -> None:
        lanes.changed()
        self._deliveries.commits.touch_session(session, now)
        self._deliveries.touch(session)

    def skip(self, session: Session, skip: Skip, now: Micros) -> None:
        """Skip the sequence numbers for which the device will send no message."""
        for ready in session.lane.inbound.skip(skip.first, skip.count):
            self._act(session, ready, now)
        self._acknowledge(session, now)

    def _charge(self, session: Session, size: int) -> bool:
        """Count bytes that are taken in and not durable yet; return False when they are too many.

        Behind a gap, or while the disk is full, a device that ignores its window would fill the
        memory. The limit is twice the window, because what waits behind a gap may come again after
        a reconnect.
        """
        if session.held_bytes > 2 * self._deliveries.limits.window_bytes:
            return False
        session.held_bytes += size + FRAME_COST
        session.taken_bytes += size + FRAME_COST
        self._deliveries.touch(session)
        return True

    def _acknowledge(self, session: Session, now: Micros) -> None:
        """Let `settle` acknowledge, once for all messages that came together."""
        session.ack_due = True
        self._deliveries.commits.touch_session(session, now)
        self._deliveries.touch(session)

    def settle(self, session: Session) -> None:
        """Acknowledge the messages that have been handled, as soon as their effects are durable."""
        if session.lanes is not None:
            self._settle_lanes(session, session.lanes)
        if session.taken_bytes or session.ack_due:
            size = 0
            # Bytes of messages that wait behind a gap stay counted until the gap is filled.
            if not session.missing:
                size, session.taken_bytes = session.taken_bytes, 0
            ack = Ack(session.lane.inbound.received, session.lane.inbound.received)
            answer = ack if session.ack_due else None
            session.ack_due = False
            durable = partial(self._durable, session, session.contacts, answer, size)
            self._deliveries.commits.when_durable(durable)

    def _durable(
        self, session: Session, contact: int, ack: Ack | None, size: int, now: Micros
    ) -> None:
        session.held_bytes -= size
        if ack is not None:
            self._say(session, contact, [ack], now)

    def _settle_lanes(self, session: Session, lanes: Lanes[Delivery]) -> None:
        """Acknowledge the messages that were handled in lanes, once what they caused is
        durable."""
        due, lanes.inbound.ack_due = lanes.inbound.ack_due, {}
        if not due:
            return
        said: list[Frame] = []
        for lane in due:
            ack = lanes.inbound.acknowledgement(lane)
            if ack is not None:
                said.append(LaneFrame(lane, ack))
        say = partial(self._say, session, session.contacts, said)
        self._deliveries.commits.when_durable(say)

    def _say(self, session: Session, contact: int, frames: list[Frame], now: Micros) -> None:
        # In a later contact WELCOME has said the same already.
        if frames and session.greeted and session.contacts == contact:
            self._deliveries.effects.append(Send(session.channel, frames))
            for line in session.lines:
                # To send it over every channel would cost the user of a metered link money.
                if line is not session.line and line.greeted:
                    self._deliveries.effects.append(SentElsewhere(line.channel, frames))

    def _act(self, session: Session, frame: MessageFrame, now: Micros) -> None:
        headers = frame.headers or _NO_HEADERS
        operation = headers.operation
        act = self._operations.get(operation) or self._moments.operations.get(operation)
        try:
            if act is None:
                raise InvalidRequest("unknown operation", operation=operation)
            act(session, frame, headers, now)
        except LasthopError as error:
            refuse(self._acceptance, session, frame.key, error, now)

    def _publish(
        self, session: Session, frame: MessageFrame, headers: Headers, now: Micros
    ) -> None:
        if headers.to is None and frame.topic is None:
            raise InvalidRequest("a message needs a target: a topic or `to`")
        if frame.topic:
            target = Target(TargetKind.TOPIC, check_topic(frame.topic))
        elif headers.to == PUBLISHERS:
            target = Target(TargetKind.PUBLISHER, "")
        else:
            target = parse_target(headers.to)
        self._accept(session, frame, headers, target, now)

    def _reply(self, session: Session, frame: MessageFrame, headers: Headers, now: Micros) -> None:
        if headers.in_reply_to is None:
            raise InvalidRequest("a reply must name the message that it answers")
        if headers.to is not None:
            # The request came from a device: the answer goes there, under the key that the device
            # knows.
            target = parse_target(headers.to)
        else:
            target = Target(TargetKind.PUBLISHER, "")
        message = self._accept(session, frame, headers, target, now, headers.in_reply_to)
        if message is not None:
            answered(self._deliveries, session, headers.in_reply_to, message, now)

    def _accept(
        self,
        session: Session,
        frame: MessageFrame,
        headers: Headers,
        target: Target,
        now: Micros,
        answers_to: int = 0,
    ) -> Message | None:
        """Accept a device's message; return None if a feature has taken it."""
        device = session.device
        source = f"device:{device.name}"
        if self._quota is not None:
            wait = self._quota.take(device.number, now, 1)
            if wait:
                raise QuotaExceeded(
                    "the quota of this device is used up", retry_after=wait / SECOND
                )
        if self._deliveries.rights is not None:
            self._acceptance.check_right(device.app, source, target)
        start = _start(frame, now)
        answers = headers.in_reply_to
        answer = headers.correlation is not None and answers is not None
        if answer:
            answers = headers.correlation
        submission = _submission_of(
            headers,
            target=target,
            body=frame.body,
            content_type=headers.content_type or DEFAULT_CONTENT_TYPE,
            deliver_before=_after(headers.deliver_within, start),
            delay_tolerance=_after(headers.tolerance, 0),
            in_reply_to=answers,
            correlation=frame.key if headers.reply_within is not None else None,
            reply_before=_after(headers.reply_within, start),
            answer=answer,
            unsaid=_unsaid(headers),
        )
        arrival = Arrival(session, frame, headers, submission, answers_to)
        message: Message | None = None
        if not any(intake(arrival, now) for intake in self._moments.intake):
            if target.kind is TargetKind.PUBLISHER and not answers_to:
                parse_target(headers.to)  # Raises: only an answer tells which publisher is meant.
            message = self._acceptance.accept(device.app, source, [submission], now)[0]
        for then in arrival.then:
            then(now)
        return message

    def _read(self, session: Session, frame: MessageFrame, headers: Headers, now: Micros) -> None:
        try:
            report = _decode_read(frame.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(f"a read must be a JSON object of numbers: {error}") from None
        self._deliveries.commits.record(
            Kind.READ,
            now,
            session,
            topic=frame.topic or "",
            msg=report.get("message", 0),
            count=report.get("count", 1),
            queue_size=report.get("queue_size", -1),
        )


PUBLISHERS = f"{TargetKind.PUBLISHER}:"
"""The target of a stream that any publisher of the app may fetch over REST."""


def _unsaid(headers: Headers) -> frozenset[str]:
    """Return the fields that a device leaves to its app's behaviour: on the hop a default is not
    sent, so it counts as not chosen."""
    unsaid = ["pull"]
    if headers.handling is Handling.FOREGROUND:
        unsaid.append("handling")
    if headers.reliability is Reliability.EXACTLY_ONCE:
        unsaid.append("reliability")
    return frozenset(unsaid)


def _start(frame: MessageFrame, now: Micros) -> Micros:
    """Return the time from which a device counts the times in its headers."""
    return key_time(frame.key) if frame.key is not None else now


def _after(within: int | None, start: Micros) -> Micros | None:
    return None if within is None else start + within * MILLISECOND
