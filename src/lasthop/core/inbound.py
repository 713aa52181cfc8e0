"""What devices send: messages for others, answers, subscriptions and reports about themselves.

Messages are taken strictly in the order of their numbers, and acknowledged when what they caused is
durable.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.acceptance import Acceptance, Submission
from lasthop.core.effects import Overheard, Send
from lasthop.core.exchanges import Exchanges
from lasthop.core.feeds.feeds import Feeds
from lasthop.core.feeds.terms import decode_terms
from lasthop.core.groups.bonds import Bonds
from lasthop.core.groups.circles import check_name, parse_circle
from lasthop.core.mailroom import Mailroom
from lasthop.core.refusal import refuse
from lasthop.core.replies import answered
from lasthop.core.session import Session
from lasthop.core.subscriptions import Subscriptions
from lasthop.core.topics import check_topic
from lasthop.core.transfers.pieces import Pieces
from lasthop.core.wishes import decode_preferences, prefer
from lasthop.errors import (
    CreditExceeded,
    InvalidRequest,
    LasthopError,
    MalformedFrame,
    TooLarge,
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
from lasthop.wire.hop.feeds import decode_look, decode_report
from lasthop.wire.hop.frames import Ack, Headers, MessageFrame, Operation, Skip
from lasthop.wire.hop.services import decode_service
from lasthop.wire.hop.topics import XPATH_HEADER

FRAME_COST = 128
"""Bytes that even an empty message takes in memory, more or less."""

T = TypeVar("T")
_NO_HEADERS = Headers()
_decode_context = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""What a column of the log holds."""
_decode_read = msgspec.json.Decoder(dict[str, _Count]).decode


class Inbound:
    """Acts on what devices say."""

    def __init__(
        self,
        room: Mailroom,
        acceptance: Acceptance,
        feeds: Feeds,
        subscriptions: Subscriptions,
        bonds: Bonds,
        pieces: Pieces,
    ) -> None:
        self._room = room
        self._bonds = bonds
        self._acceptance = acceptance
        self._exchanges = Exchanges(room, acceptance)
        self._feeds = feeds
        self._subscriptions = subscriptions
        self._pieces = pieces

    def message(self, session: Session, frame: MessageFrame, now: Micros) -> None:
        """Take one message; out of order it waits, seen before it is only acknowledged again."""
        within = self._charge(session, len(frame.body))
        if frame.seq is None:
            if within:
                self._act(session, frame, now)
            return
        if not within:
            raise CreditExceeded("more is unacknowledged than the window allows")
        for ready in session.inbound.receive(frame.seq, frame):
            self._act(session, ready, now)
        self._acknowledge(session, now)

    def skip(self, session: Session, skip: Skip, now: Micros) -> None:
        """The device closed these numbers."""
        for ready in session.inbound.skip(skip.first, skip.count):
            self._act(session, ready, now)
        self._acknowledge(session, now)

    def _charge(self, session: Session, size: int) -> bool:
        """Count what is taken in and not durable yet; false when it is too much.

        Behind a gap, or while the disk is full, a device that ignores its window would fill the
        memory. Twice the window: what waits behind a gap may come again after a reconnect.
        """
        if session.held_bytes > 2 * self._room.limits.window_bytes:
            return False
        session.held_bytes += size + FRAME_COST
        session.taken_bytes += size + FRAME_COST
        self._room.touch(session)
        return True

    def _acknowledge(self, session: Session, now: Micros) -> None:
        """Say how far we are; one acknowledgement for all that came together."""
        session.ack_due = True
        self._room.journal.touch_session(session, now)
        self._room.touch(session)

    def settle(self, session: Session) -> None:
        """Acknowledge what has been taken as soon as it is durable."""
        if session.taken_bytes or session.ack_due:
            size = 0
            if not session.inbound.missing():
                size, session.taken_bytes = session.taken_bytes, 0
            ack = Ack(session.inbound.received, session.inbound.received)
            answer = ack if session.ack_due else None
            session.ack_due = False
            durable = partial(self._durable, session, session.contacts, answer, size)
            self._room.journal.when_durable(durable)

    def _durable(
        self, session: Session, contact: int, ack: Ack | None, size: int, now: Micros
    ) -> None:
        session.held_bytes -= size
        if ack is not None and session.greeted and session.contacts == contact:
            self._room.effects.append(Send(session.channel, [ack]))
            for line in session.lines:
                if line is not session.line and line.greeted:
                    self._room.effects.append(Overheard(line.channel, [ack]))

    def _act(self, session: Session, frame: MessageFrame, now: Micros) -> None:
        headers = frame.headers or _NO_HEADERS
        try:
            match headers.operation:
                case Operation.DATA:
                    self._publish(session, frame, headers, now)
                case Operation.REPLY:
                    self._reply(session, frame, headers, now)
                case Operation.SUBSCRIBE:
                    terms = decode_terms(frame.body) if frame.body else None
                    xpath = dict(headers.extra).get(XPATH_HEADER)
                    self._subscriptions.subscribe(session, frame.topic, now, terms, xpath=xpath)
                case Operation.UNSUBSCRIBE:
                    self._subscriptions.unsubscribe(session, frame.topic, now)
                case Operation.PREFERENCES:
                    prefer(self._room, session, decode_preferences(frame.body), now)
                case Operation.PULL:
                    self._pieces.bodies.pull(session, headers.in_reply_to)
                case Operation.CONTEXT:
                    self._context(session, frame.body, now)
                case Operation.READ:
                    self._read(session, frame, now)
                case Operation.LOOK:
                    self._look(session, frame, now)
                case Operation.REPORT:
                    self._report(session, frame, now)
                case Operation.OFFER:
                    self._exchanges.offer(session, decode_service(frame.body), now)
                case Operation.WITHDRAW:
                    self._exchanges.withdraw(session, frame.body, now)
                case Operation.FIND:
                    self._exchanges.find(session, frame, now)
                case Operation.JOIN:
                    circle = parse_circle(headers.to)
                    self._bonds.join(session, circle, now, by_itself=True)
                case Operation.LEAVE:
                    self._bonds.leave(session, parse_circle(headers.to), now)
                case Operation.CLAIM:
                    self._claim(session, frame, headers, now)
                case other:
                    raise InvalidRequest("unknown operation", operation=other)
        except LasthopError as error:
            self._refuse(session, frame, error, now)

    def _publish(
        self, session: Session, frame: MessageFrame, headers: Headers, now: Micros
    ) -> None:
        if headers.to is None and frame.topic is None:
            raise InvalidRequest("a message needs a target: a topic or `to`")
        if frame.topic:
            target = Target(TargetKind.TOPIC, check_topic(frame.topic))
        elif headers.stream and headers.to == PUBLISHERS:
            target = Target(TargetKind.PUBLISHER, "")
        else:
            target = parse_target(headers.to)
        if headers.stream:
            self._open_stream(session, frame, headers, target, now)
        elif headers.gather and headers.reply_within is not None:
            content_type = headers.content_type or DEFAULT_CONTENT_TYPE
            asked = self._exchanges.asked_by(session, target, content_type, frame.body)
            self._accept(session, frame, headers, target, now)
            if asked is not None:
                before = _after(headers.reply_within, _start(frame, now))
                self._exchanges.tell_asked(session, frame, asked, before, now)
        else:
            self._accept(session, frame, headers, target, now)

    def _open_stream(
        self,
        session: Session,
        frame: MessageFrame,
        headers: Headers,
        target: Target,
        now: Micros,
    ) -> None:
        device = session.device
        if frame.key is None:
            raise InvalidRequest("a stream needs a key")
        submission = Submission(
            target=target,
            content_type=headers.content_type or DEFAULT_CONTENT_TYPE,
            title=headers.title,
            priority=headers.priority,
            handling=headers.handling,
            headers=headers.extra,
        )
        self._pieces.streams.open(
            device.app, f"device:{device.name}", submission, now, sender=session, theirs=frame.key
        )

    def _reply(self, session: Session, frame: MessageFrame, headers: Headers, now: Micros) -> None:
        if headers.in_reply_to is None:
            raise InvalidRequest("a reply must name the message that it answers")
        if headers.to is not None:
            # The request came from a device: the answer goes there under the key it knows.
            target = parse_target(headers.to)
        else:
            target = Target(TargetKind.PUBLISHER, "")
        message = self._accept(session, frame, headers, target, now, headers.in_reply_to)
        if message is not None:
            answered(self._room, session, headers.in_reply_to, message, now)

    def _accept(
        self,
        session: Session,
        frame: MessageFrame,
        headers: Headers,
        target: Target,
        now: Micros,
        answers_to: int = 0,
    ) -> Message | None:
        """Own a device's message; None when it has to wait for the app's surrogate first."""
        start = _start(frame, now)
        body = frame.body
        if headers.ahead is not None:
            body = self._pieces.uploads.claim(session, frame.key, headers.ahead)
        answers = headers.in_reply_to
        answer = headers.correlation is not None and answers is not None
        if answer:
            answers = headers.correlation
        submission = Submission(
            target=target,
            body=body,
            content_type=headers.content_type or DEFAULT_CONTENT_TYPE,
            title=headers.title,
            priority=headers.priority,
            rank=headers.rank,
            deliver_before=_after(headers.deliver_within, start),
            reliability=headers.reliability,
            handling=headers.handling,
            queue=headers.queue,
            in_reply_to=answers,
            correlation=frame.key if headers.reply_within is not None or headers.binding else None,
            reply_before=_after(headers.reply_within, start),
            headers=headers.extra,
            answer=answer,
            binding=headers.binding,
            unsaid=_unsaid(headers),
        )
        device = session.device
        source = f"device:{device.name}"
        surrogates = self._room.surrogates
        if surrogates is not None and surrogates.serves(device.app):
            surrogates.hold(
                session, submission, answers=answers_to, sent_as=frame.key or 0, now=now
            )
            return None
        return self._acceptance.accept(device.app, source, [submission], now)[0]

    def _claim(self, session: Session, frame: MessageFrame, headers: Headers, now: Micros) -> None:
        if headers.in_reply_to is None:
            raise InvalidRequest("a claim must name the message that it is about")
        self._bonds.claim(session, headers.in_reply_to, frame.key, now)

    def _look(self, session: Session, frame: MessageFrame, now: Micros) -> None:
        look = _understood(decode_look, frame.body)
        self._feeds.look(session, frame.topic or "", look, frame.key, now)

    def _report(self, session: Session, frame: MessageFrame, now: Micros) -> None:
        report = _understood(decode_report, frame.body)
        self._feeds.report(session, frame.topic, report, now)

    def _context(self, session: Session, body: bytes, now: Micros) -> None:
        limit = self._room.limits.context
        if len(body) > limit:
            raise TooLarge("context too large", size=len(body), limit=limit)
        try:
            report = _decode_context(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(f"a context is a JSON object: {error}") from None
        device = session.device
        device.record.context = {name: bytes(value) for name, value in report.items()}
        self._room.journal.commit.devices[device.number] = device.row()
        self._room.journal.tell(Kind.CONTEXT_CHANGED, now, session, size=len(body))
        self._subscriptions.context_changed(session, now)

    def _read(self, session: Session, frame: MessageFrame, now: Micros) -> None:
        try:
            report = _decode_read(frame.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(f"a read is a JSON object of numbers: {error}") from None
        self._room.journal.tell(
            Kind.READ,
            now,
            session,
            topic=frame.topic or "",
            msg=report.get("message", 0),
            count=report.get("count", 1),
            queue_size=report.get("queue_size", -1),
        )

    def _refuse(
        self, session: Session, frame: MessageFrame, error: LasthopError, now: Micros
    ) -> None:
        refuse(self._acceptance, session, frame.key, error, now)


PUBLISHERS = f"{TargetKind.PUBLISHER}:"
"""As the target of a stream: whoever fetches it over REST."""


def _unsaid(headers: Headers) -> frozenset[str]:
    """What a device leaves to its app: on the hop a default goes without saying."""
    unsaid = ["pull"]
    if headers.handling is Handling.FOREGROUND:
        unsaid.append("handling")
    if headers.reliability is Reliability.EXACTLY_ONCE:
        unsaid.append("reliability")
    return frozenset(unsaid)


def parse_target(text: str | None) -> Target:
    """Read `kind:name`."""
    kind, colon, name = (text or "").partition(":")
    if not colon or kind not in _ADDRESSABLE or (not name and kind != TargetKind.APP):
        raise InvalidRequest(
            "a target is device:NAME, user:NAME, topic:NAME, service:NAME, group:NAME, queue:NAME"
            " or app:",
            target=text,
        )
    if kind == TargetKind.TOPIC:
        check_topic(name)
    elif kind in (TargetKind.GROUP, TargetKind.QUEUE):
        check_name(name)
    return Target(TargetKind(kind), name)


_ADDRESSABLE = set(TargetKind) - {TargetKind.PUSH, TargetKind.PUBLISHER}


def _understood(decode: Callable[[bytes], T], body: bytes) -> T:
    """A body of bytes; what is wrong with it is answered, and does not end the channel."""
    try:
        return decode(body)
    except MalformedFrame as error:
        raise InvalidRequest(str(error)) from None


def _start(frame: MessageFrame, now: Micros) -> Micros:
    """From when a device counts the times that it names."""
    return key_time(frame.key) if frame.key is not None else now


def _after(within: int | None, start: Micros) -> Micros | None:
    return None if within is None else start + within * MILLISECOND
