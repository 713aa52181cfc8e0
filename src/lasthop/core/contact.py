"""Devices that come and go: the handshake, what their acknowledgements mean, and the loss of a
channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lasthop.clock import SECOND, Micros
from lasthop.core.delivery import Delivery
from lasthop.core.dispatch import Dispatcher
from lasthop.core.effects import Disconnect, Send
from lasthop.core.lifecycle import CONFIRMED_BY, Confirmation, State, Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.registry import Device, DeviceRecord
from lasthop.core.session import Session
from lasthop.errors import LasthopError, NotFound, OutOfOrder, Unauthorized
from lasthop.events import Kind
from lasthop.wire.hop.frames import Ack, CloseCode, Credit, Dropped, Hello, Welcome
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

    def session(self, channel: int) -> Session | None:
        """Whose channel this is; `None` before the handshake and after a newer channel took
        over."""
        return self._by_channel.get(channel)

    def hello(self, channel: int, hello: Hello, now: Micros, *, local: bool) -> None:
        """A device introduces itself."""
        try:
            device = self._identify(hello, now, local=local)
        except LasthopError as error:
            code = CloseCode(error.hop_code)
            self._room.effects.append(Disconnect(channel, code, str(error)))
            return
        session = self._room.session(device)
        if session.channel:
            self._take_over(session, now)
        answer = self._number(session, hello, now)
        resumed = isinstance(answer, Resume)
        self._by_channel[channel] = session
        session.channel = channel
        session.link = hello.link or ""
        session.network = hello.network or ""
        session.paused = False
        self._set_window(session, hello.window)
        self._room.journal.tell(
            Kind.CONTACT_STARTED,
            now,
            session,
            link=session.link,
            network=session.network,
            channel=channel,
            epoch=session.epoch,
            resumed=resumed,
        )
        if isinstance(answer, Resume):
            self._drop(session, hello.dropped, now)
            self.acknowledge(session, answer.ack, now)
        welcome = self._welcome(session, hello, answer)
        self._room.journal.when_durable(partial(self._begin, session, channel, welcome))

    def _begin(self, session: Session, channel: int, welcome: Welcome, now: Micros) -> None:
        """The numbering is durable: answer, and go on from what the device has."""
        if session.channel != channel:
            return
        self._room.effects.append(Send(channel, [welcome]))
        self._dispatcher.resend(session, now)
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
        known = GatewaySession(
            current=session.numbering(),
            assigned=session.outbound.assigned,
            acknowledged=session.outbound.received,
            previous=session.previous,
        )
        answer = answer_to(known, hello)
        if isinstance(answer, NewEpoch) and not answer.offered_before:
            if answer.superseded is not None and hello.epoch == session.epoch:
                # Its numbers run ahead of ours: we are an older copy of ourselves. What it says of
                # the part that we know is true all the same.
                received = min(hello.received, session.outbound.assigned)
                self.acknowledge(session, Ack(received, min(hello.delivered, received)), now)
            self._begin_epoch(session, answer, now)
        return answer

    def _begin_epoch(self, session: Session, epoch: NewEpoch, now: Micros) -> None:
        """Start numbering at 0; what was under way goes back to the queue."""
        for delivery in session.under_way():
            delivery.redelivered = delivery.redelivered or delivery.attempts > 0
            self._room.step(delivery, Step.REQUEUE, now, "the numbering starts anew")
            delivery.seq = delivery.epoch = -1
            session.enqueue(delivery)
        session.restart(self._terms.incarnation, epoch.current.epoch, epoch.previous)
        self._room.journal.tell(Kind.EPOCH_STARTED, now, session, epoch=session.epoch)

    def _welcome(self, session: Session, hello: Hello, answer: Resume | NewEpoch) -> Welcome:
        limits = self._room.limits
        preserve = limits.preserve // SECOND
        if hello.preserve is not None:
            preserve = min(preserve, hello.preserve)
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
            preserve=preserve,
            max_frame=limits.max_frame,
            heartbeat=limits.heartbeat // SECOND,
        )

    def acknowledge(self, session: Session, ack: Ack, now: Micros) -> None:
        """The device has received, and its application has had, this much."""
        progress = session.outbound.acknowledge(ack)
        # What is delivered at once is not said to be received before: one step, one event.
        for delivery in progress.delivered:
            if isinstance(delivery, Delivery) and not delivery.state.final:
                if delivery.state is State.SENDING:
                    session.flight_bytes -= delivery.item.size
                self._room.step(delivery, Step.DELIVER, now)
        for delivery in progress.received:
            if isinstance(delivery, Delivery) and delivery.state is State.SENDING:
                session.flight_bytes -= delivery.item.size
                self._receive(delivery, now)
        if progress.delivered or progress.received:
            self._room.journal.touch_session(session)
            self._room.touch(session)

    def _receive(self, delivery: Delivery, now: Micros) -> None:
        if CONFIRMED_BY[delivery.item.message.reliability] is Confirmation.RECEIPT:
            self._room.step(delivery, Step.DELIVER, now, "confirmed by receipt")
        else:
            self._room.step(delivery, Step.RECEIVE, now)

    def dropped(self, session: Session, dropped: Dropped, now: Micros) -> None:
        """The device let these numbers go as too late: the application never had them."""
        self._drop(session, dropped.ranges, now)

    def _drop(self, session: Session, ranges: tuple[tuple[int, int], ...], now: Micros) -> None:
        for first, stop in ranges:
            if stop > session.outbound.assigned:
                raise OutOfOrder("dropped what was never sent", number=stop - 1)
            for seq in range(max(first, session.outbound.delivered), stop):
                delivery = session.outbound.get(seq)
                if isinstance(delivery, Delivery) and not delivery.state.final:
                    if delivery.state is State.SENDING:
                        session.flight_bytes -= delivery.item.size
                    self._room.step(delivery, Step.EXPIRE, now, "too late when it was to be used")

    def credit(self, session: Session, credit: Credit, now: Micros) -> None:
        """The device takes more, or less, at a time."""
        self._set_window(session, credit)
        self._room.journal.tell(
            Kind.CREDIT_CHANGED, now, session, count=credit.messages, size=credit.bytes
        )
        self._room.touch(session)

    def lost(self, channel: int, reason: str, now: Micros) -> None:
        """A channel has ended."""
        session = self._by_channel.pop(channel, None)
        if session is None:
            return
        session.channel = 0
        session.lost_at = now
        self._room.journal.tell(
            Kind.CONTACT_LOST, now, session, reason=reason, link=session.link, channel=channel
        )
        self._watch_deadlines(session, now)

    def _watch_deadlines(self, session: Session, now: Micros) -> None:
        """What is released and late can only be told by the device: ask again when it is given
        up."""
        for delivery in session.under_way():
            before = delivery.item.message.deliver_before
            if before is not None and before <= now:
                self._room.timers.add(now + self._room.limits.preserve, delivery)

    def _take_over(self, session: Session, now: Micros) -> None:
        old = session.channel
        self.lost(old, "a newer channel took over", now)
        self._room.effects.append(Disconnect(old, CloseCode.REPLACED, "a newer channel took over"))

    def _set_window(self, session: Session, window: Credit | None) -> None:
        if window is not None:
            limits = self._room.limits
            session.window = Credit(
                min(window.messages, limits.window_messages), min(window.bytes, limits.window_bytes)
            )
