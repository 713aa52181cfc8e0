"""From pending to the link: whose turn it is, the release, the transmission, and the end of what is
too late.

A release gives a delivery its sequence number; the frame leaves when that is durable. Between the
two nothing can be taken back, and after the deadline nothing leaves.
"""

from __future__ import annotations

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.delivery import Delivery
from lasthop.core.effects import Fetch, Send
from lasthop.core.lifecycle import State, Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.session import Session
from lasthop.decision.decide import Action, decide
from lasthop.events import Kind
from lasthop.message import (
    DEFAULT_CONTENT_TYPE,
    DEFAULT_PRIORITY,
    Handling,
    Message,
    Reliability,
    TargetKind,
    key_time,
)
from lasthop.wire.hop.frames import Frame, Headers, MessageFrame, Skip


class Dispatcher:
    """Moves deliveries from the mailbox to the link."""

    def __init__(self, room: Mailroom) -> None:
        self._room = room
        self._fetching: dict[int, list[Delivery]] = {}

    def pump(self, session: Session, now: Micros) -> None:
        """Release what the device takes now, best first."""
        released: list[Delivery] = []
        room = self._room
        while (delivery := session.best()) is not None:
            message = delivery.item.message
            decision = decide(
                deliver_after=message.deliver_after,
                deliver_before=message.deliver_before,
                in_contact=session.channel != 0,
                has_credit=session.has_credit,
                now=now,
            )
            if decision.action is Action.EXPIRE:
                session.take_best()
                room.step(delivery, Step.EXPIRE, now, decision.reason)
                continue
            if decision.action is Action.HOLD:
                break
            session.take_best()
            if message.reliability is not Reliability.BEST_EFFORT:
                session.assign(delivery)
            room.step(delivery, Step.RELEASE, now, decision.reason)
            if message.replace_key is not None and session.replaceable is not None:
                session.replaceable.pop(message.replace_key, None)
            released.append(delivery)
        if released:
            channel = session.channel
            room.journal.when_durable(lambda at: self.transmit(session, channel, released, at))

    def transmit(
        self, session: Session, channel: int, deliveries: list[Delivery], now: Micros
    ) -> None:
        """Hand released deliveries to the channel for which they were released.

        If that channel is gone, the next one begins with everything that is unacknowledged.
        """
        if session.channel != channel:
            for delivery in deliveries:
                if delivery.seq < 0 and delivery.state is State.SENDING:
                    self._room.step(delivery, Step.REQUEUE, now, "the link was lost before it left")
                    session.enqueue(delivery)
                    self._room.touch(session)
            return
        frames: list[Frame] = []
        missing: list[int] = []
        for delivery in deliveries:
            if delivery.state is not State.SENDING:
                continue
            if not delivery.item.resident:
                key = delivery.item.message.key
                missing.append(key)
                self._fetching.setdefault(key, []).append(delivery)
                continue
            self._put(session, delivery, frames, now)
        if missing:
            self._room.effects.append(Fetch(missing))
        if frames:
            self._room.effects.append(Send(channel, frames))

    def fetched(self, messages: dict[int, Message], now: Micros) -> None:
        """Bodies have come back from the store: send on."""
        for key, message in messages.items():
            for delivery in self._fetching.pop(key, ()):
                if not delivery.item.resident:
                    delivery.item.refill(message.body)
                session = delivery.session
                if session.channel and delivery.state is State.SENDING:
                    self.transmit(session, session.channel, [delivery], now)

    def resend(self, session: Session, now: Micros) -> None:
        """Send everything again that the device has not received; close what has ended since."""
        again: list[Delivery] = []
        frames: list[Frame] = []
        for seq, item in session.outbound.unacknowledged():
            if isinstance(item, Delivery) and item.state is State.SENDING:
                again.append(item)
            else:
                frames.append(Skip(seq, 1))
        if frames:
            self._room.effects.append(Send(session.channel, frames))
        self.transmit(session, session.channel, again, now)

    def wake(self, now: Micros) -> None:
        """Deal with deliveries whose time has come: a delay that is over, or a deadline."""
        room = self._room
        for delivery in room.timers.due(now):
            before = delivery.item.message.deliver_before
            if delivery.state is State.PENDING:
                if before is not None and now >= before:
                    room.step(delivery, Step.EXPIRE, now, "deliver_before has passed")
                else:
                    delivery.session.enqueue(delivery)
                    room.touch(delivery.session)
            elif delivery.state is State.SENDING and before is not None and now >= before:
                self._overdue(delivery, now)

    def _overdue(self, delivery: Delivery, now: Micros) -> None:
        """Released and late: only the device knows whether it was in time.

        In contact, its next acknowledgement tells (it drops what is late and says so). Out of
        contact we wait for its return as long as the session is preserved, and then give an honest
        "timed out".
        """
        session = delivery.session
        if session.channel:
            return
        until = session.lost_at + self._room.limits.preserve
        if now < until:
            self._room.timers.add(until, delivery)
        else:
            self._room.step(delivery, Step.TIME_OUT, now, "the device has not been back to tell")

    def _put(self, session: Session, delivery: Delivery, frames: list[Frame], now: Micros) -> None:
        room = self._room
        message = delivery.item.message
        if message.deliver_before is not None and now >= message.deliver_before:
            room.step(delivery, Step.EXPIRE, now, "deliver_before passed before it could leave")
            if delivery.seq >= 0:
                session.flight_bytes -= delivery.item.size
                frames.append(Skip(delivery.seq, 1))
            return
        frames.append(frame_of(delivery))
        delivery.attempts += 1
        event = room.journal.story(delivery, Kind.TRANSMITTED, now, "")
        event.bytes = delivery.item.size
        event.attempt = delivery.attempts
        event.link = session.link
        event.channel = session.channel
        event.seq = delivery.seq
        event.epoch = session.epoch
        room.journal.append(delivery, event, now)
        if message.reliability is Reliability.BEST_EFFORT:
            room.step(delivery, Step.HAND_OVER, now, "best effort")


def frame_of(delivery: Delivery) -> MessageFrame:
    """The message as it travels to the device."""
    message = delivery.item.message
    topic = message.target.name if message.target.kind is TargetKind.TOPIC else None
    seq = delivery.seq if delivery.seq >= 0 else None
    return MessageFrame(seq, message.key, topic, headers_of(delivery), message.body)


def headers_of(delivery: Delivery) -> Headers | None:
    """What differs from the defaults; `None` for a plain message."""
    m = delivery.item.message
    if (
        m.content_type == DEFAULT_CONTENT_TYPE
        and m.priority == DEFAULT_PRIORITY
        and m.deliver_before is None
        and m.in_reply_to is None
        and m.reply_before is None
        and m.handling is Handling.FOREGROUND
        and m.reliability is Reliability.EXACTLY_ONCE
        and m.title is None
        and not m.rank
        and not m.headers
        and m.queue is None
        and not delivery.redelivered
        and not m.source.startswith("device:")
    ):
        return None
    start = key_time(m.key)
    return Headers(
        content_type=m.content_type,
        priority=m.priority,
        deliver_within=_offset(m.deliver_before, start),
        in_reply_to=m.in_reply_to,
        reply_within=_offset(m.reply_before, start),
        handling=m.handling,
        reliability=m.reliability,
        title=m.title,
        rank=m.rank,
        source=m.source if m.source.startswith("device:") else None,
        correlation=m.correlation,
        redelivered=delivery.redelivered,
        extra=m.headers,
        queue=m.queue,
    )


def _offset(time: Micros | None, start: Micros) -> int | None:
    return None if time is None else max(0, (time - start) // MILLISECOND)
