"""Devices that come and go: the handshake, what their acknowledgements mean, and the loss of a
channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lasthop.clock import SECOND, Micros
from lasthop.core.delivery import Delivery
from lasthop.core.dispatch import Dispatcher
from lasthop.core.effects import Disconnect, Send
from lasthop.core.lifecycle import CONFIRMED_BY, DELIVERED, SENDING, Confirmation, Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.registry import Device, DeviceRecord
from lasthop.core.retransmission import Retransmission
from lasthop.core.session import Session
from lasthop.errors import LasthopError, NotFound, OutOfOrder, Unauthorized
from lasthop.events import Kind
from lasthop.wire.hop.frames import (
    DEFAULT_WINDOW,
    Ack,
    CloseCode,
    Credit,
    Dropped,
    Hello,
    Welcome,
)
from lasthop.wire.hop.persistence import GatewaySession, NewEpoch, Resume, answer as answer_to


@dataclass(frozen=True, slots=True)
class Terms:
    """What the gateway offers every device in its WELCOME."""

    incarnation: bytes
    open_house: bool
    """Devices without a token may come, and are registered when they do. Only ever on loopback."""
    accept: tuple[str, ...] = ()


class Contacts:
    """Who is there, over which channel."""

    def __init__(self, room: Mailroom, dispatcher: Dispatcher, terms: Terms) -> None:
        self._room = room
        self._dispatcher = dispatcher
        self._terms = terms
        self._by_channel: dict[int, Session] = {}
        self._lossy: set[int] = set()

    def opened(self, channel: int, *, reliable: bool) -> None:
        """A channel is there; one that may lose frames needs more care."""
        if not reliable:
            self._lossy.add(channel)

    def session(self, channel: int) -> Session | None:
        """Whose channel this is; `None` before the handshake and after a newer channel took
        over."""
        return self._by_channel.get(channel)

    def hello(self, channel: int, hello: Hello, now: Micros, *, local: bool) -> None:
        """A device introduces itself."""
        if channel in self._by_channel:
            raise OutOfOrder("a second HELLO on a channel", device=hello.device)
        try:
            device = self._identify(hello, now, local=local)
        except LasthopError as error:
            code = CloseCode(error.hop_code)
            self._room.effects.append(Disconnect(channel, code, str(error)))
            return
        session = self._room.session(device)
        self.disconnect(session, CloseCode.REPLACED, "a newer channel took over", now)
        answer = self._number(session, hello, now)
        resumed = isinstance(answer, Resume)
        self._by_channel[channel] = session
        session.channel = channel
        session.link = hello.link or ""
        session.network = hello.network or ""
        session.paused = False
        session.max_frame = hello.max_frame
        session.preserve = self._room.limits.preserve
        if hello.preserve is not None:
            session.preserve = min(session.preserve, hello.preserve * SECOND)
        if channel in self._lossy:
            session.retransmission = Retransmission(session)
        self._set_window(session, hello.window or DEFAULT_WINDOW)
        self._room.journal.tell(
            Kind.CONTACT_STARTED,
            now,
            session,
            link=session.link,
            network=session.network,
            channel=channel,
            epoch=session.epoch,
            resumed=resumed,
            count=session.window.messages,
            size=session.window.bytes,
        )
        if isinstance(answer, Resume):
            self._drop(session, hello.dropped, now)
            self.acknowledge(session, answer.ack, now)
        welcome = self._welcome(session, answer)
        self._room.journal.when_durable(partial(self._begin, session, channel, welcome))

    def _begin(self, session: Session, channel: int, welcome: Welcome, now: Micros) -> None:
        """The numbering is durable: answer, and go on from what the device has."""
        if session.channel != channel:
            return
        session.greeted = True
        self._room.effects.append(Send(channel, [welcome]))
        self._dispatcher.resume(session, now)
        self._room.touch(session)

    def _identify(self, hello: Hello, now: Micros, *, local: bool) -> Device:
        device = self._room.registry.find(hello.app, hello.device)
        if device is None:
            if not (self._terms.open_house and local):
                raise NotFound("unknown device", app=hello.app, device=hello.device)
            return self.register(hello.app, hello.device, DeviceRecord(registered_at=now), now)
        if device.record.token_hash:
            if hello.token is None or not device.accepts(hello.token):
                raise Unauthorized("wrong token", device=hello.device)
        elif not (self._terms.open_house and local):
            raise Unauthorized("this device has no token and may come from this machine only")
        return device

    def register(self, app: str, name: str, record: DeviceRecord, now: Micros) -> Device:
        """Add a device."""
        device = self._room.registry.add(app, name, record)
        self._room.journal.commit.devices[device.number] = device.row()
        self._room.journal.tell(Kind.REGISTERED, now, self._room.session(device))
        return device

    def _number(self, session: Session, hello: Hello, now: Micros) -> Resume | NewEpoch:
        """Whether the numbering goes on, or another one begins."""
        # Numbers given out by a life of the store of which this one is a copy are not continued:
        # how far it got with them nobody knows.
        copied = session.incarnation != self._terms.incarnation
        known = GatewaySession(
            current=session.numbering(),
            assigned=-1 if copied else session.sendable,
            acknowledged=session.outbound.received,
            previous=session.previous,
        )
        answer = answer_to(known, hello)
        if isinstance(answer, NewEpoch) and (copied or not answer.offered_before):
            if (hello.incarnation, hello.epoch) == (session.incarnation, session.epoch):
                # Its numbers run ahead of ours: we are an older copy of ourselves. What it says of
                # the part that we know is true all the same.
                received = min(hello.received, session.sendable)
                self.acknowledge(session, Ack(received, min(hello.delivered, received)), now)
            self._begin_epoch(session, answer, now)
        return answer

    def _begin_epoch(self, session: Session, epoch: NewEpoch, now: Micros) -> None:
        """Start numbering at 0; what was under way goes back to the queue."""
        for delivery in session.under_way():
            before = delivery.item.message.deliver_before
            if before is not None and now >= before:
                self._room.give_up(delivery, Step.EXPIRE, now, "too late to number it anew")
                continue
            delivery.redelivered = delivery.redelivered or delivery.attempts > 0
            self._room.step(delivery, Step.REQUEUE, now, "the numbering starts anew")
            delivery.seq = delivery.epoch = -1
            session.enqueue(delivery)
        session.restart(self._terms.incarnation, epoch.current.epoch, epoch.previous)
        self._room.journal.tell(Kind.EPOCH_STARTED, now, session, epoch=session.epoch)

    def _welcome(self, session: Session, answer: Resume | NewEpoch) -> Welcome:
        limits = self._room.limits
        resumed = isinstance(answer, Resume)
        return Welcome(
            incarnation=session.incarnation,
            epoch=session.epoch,
            resumed=resumed,
            superseded=answer.superseded if isinstance(answer, NewEpoch) else None,
            received=session.inbound.received,
            closed=answer.closed if isinstance(answer, Resume) else 0,
            accept=self._terms.accept,
            window=Credit(limits.window_messages, limits.window_bytes),
            preserve=session.preserve // SECOND,
            max_frame=limits.max_frame,
            heartbeat=limits.heartbeat // SECOND,
        )

    def acknowledge(self, session: Session, ack: Ack, now: Micros) -> None:
        """The device has received, and its application has had, this much."""
        outbound = session.outbound
        highest = ack.individual[-1][1] if ack.individual else ack.received
        if highest > session.sendable:
            raise OutOfOrder("acknowledged what was never sent", number=highest - 1)
        oldest = outbound.received
        progress = outbound.acknowledge(ack)
        step, deliver = self._room.step, Step.DELIVER
        # What is delivered at once is not said to be received before: one step, one event.
        for delivery in progress.delivered:
            if isinstance(delivery, Delivery) and delivery.state < DELIVERED:
                step(delivery, deliver, now)
        for delivery in progress.received:
            if isinstance(delivery, Delivery) and delivery.state is SENDING:
                if CONFIRMED_BY[delivery.item.message.reliability] is Confirmation.RECEIPT:
                    step(delivery, deliver, now, "confirmed by receipt")
                else:
                    step(delivery, Step.RECEIVE, now)
        if progress.delivered or progress.received:
            self._room.journal.touch_session(session, now)
            self._room.touch(session)
        if session.retransmission is not None and outbound.received > oldest:
            self._dispatcher.advanced(session, now)

    def dropped(self, session: Session, dropped: Dropped, now: Micros) -> None:
        """The device let these numbers go as too late: the application never had them."""
        self._drop(session, dropped.ranges, now)

    def _drop(self, session: Session, ranges: tuple[tuple[int, int], ...], now: Micros) -> None:
        for first, stop in ranges:
            if stop > session.sendable:
                raise OutOfOrder("dropped what was never sent", number=stop - 1)
            for seq in range(max(first, session.outbound.delivered), stop):
                delivery = session.outbound.get(seq)
                if isinstance(delivery, Delivery) and delivery.state < DELIVERED:
                    self._room.step(delivery, Step.EXPIRE, now, "too late when it was to be used")

    def paused(self, channel: int, paused: bool, now: Micros) -> None:
        """The channel's unsent buffer is full, or has room again."""
        session = self._by_channel.get(channel)
        if session is None or session.paused == paused:
            return
        session.paused = paused
        window = Credit(0, 0) if paused else session.window
        self._room.journal.tell(
            Kind.CREDIT_CHANGED,
            now,
            session,
            count=window.messages,
            size=window.bytes,
            reason="the link is full" if paused else "the link has room again",
        )
        self._room.touch(session)

    def credit(self, session: Session, credit: Credit, now: Micros) -> None:
        """The device takes more, or less, at a time."""
        self._set_window(session, credit)
        self._room.journal.tell(
            Kind.CREDIT_CHANGED, now, session, count=credit.messages, size=credit.bytes
        )
        self._room.touch(session)

    def lost(self, channel: int, reason: str, now: Micros) -> None:
        """A channel has ended."""
        self._lossy.discard(channel)
        session = self._by_channel.pop(channel, None)
        if session is None:
            return
        session.channel = 0
        session.greeted = False
        session.retransmission = None
        session.lost_at = now
        self._room.journal.tell(
            Kind.CONTACT_LOST, now, session, reason=reason, link=session.link, channel=channel
        )
        if session.outbound.delivered < session.outbound.assigned:
            self._dispatcher.preserve(session)

    def disconnect(self, session: Session, code: CloseCode, reason: str, now: Micros) -> None:
        """Send a device away, if it is there."""
        channel = session.channel
        if channel:
            self.lost(channel, reason, now)
            self._room.effects.append(Disconnect(channel, code, reason))

    def _set_window(self, session: Session, window: Credit) -> None:
        limits = self._room.limits
        if window.messages > limits.flight_messages or window.bytes > limits.flight_bytes:
            window = Credit(
                min(window.messages, limits.flight_messages), min(window.bytes, limits.flight_bytes)
            )
        session.window = window
