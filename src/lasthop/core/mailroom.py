"""Every open delivery, and the only way in which one changes its state.

The mailroom is the state that acceptance, dispatch and contact share. `step` is the sole place
where a delivery moves through the life cycle: it looks the step up in the table, records the event
and the row, and forgets what has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lasthop.clock import DAY, SECOND, Micros
from lasthop.core.behaviour import Behaviours
from lasthop.core.delivery import Delivery, Item
from lasthop.core.effects import Changed, Effect
from lasthop.core.feature import Decider, Sender
from lasthop.core.journal import Journal
from lasthop.core.lifecycle import DELIVERED, SENDING, TRANSITIONS, Step
from lasthop.core.moments import Moments
from lasthop.core.registry import Device, Registry
from lasthop.core.retransmission import Retransmission
from lasthop.core.session import Session
from lasthop.core.timers import Timers
from lasthop.events import Event
from lasthop.message import KeyMaker, Message


class Waker(Protocol):
    """Something else that wants to be told when its time has come."""

    def woken(self, now: Micros) -> None:
        """It has."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one gateway takes on. Each number says who it protects."""

    body: int = 1 << 20
    """Bytes of a message, for an app whose behaviour does not say otherwise."""
    largest_body: int = 16 << 20
    """What an app's behaviour may allow: a body is in memory as a whole when it is accepted and
    when the application gets it. What is larger is a stream."""
    segment: int = 16 << 10
    """Bytes of a body above which it goes ahead of its message in pieces, so that what is more
    urgent can overtake it."""
    uploads: int = 16
    uploads_per_device: int = 4
    """Bodies that come in from devices at a time; they are in memory while they grow. Others wait
    for their turn."""
    stream_window: int = 256 << 10
    """Bytes of one stream that the gateway holds; the sender waits until the receiver has taken
    some. More than a quarter of a second at a megabyte a second gains nothing."""
    streams: int = 1024
    """Open at a time: with the window 256 MiB of memory at most."""
    streams_per_device: int = 16
    stream_patience: Micros = 7 * DAY
    """How long a stream may stand still before it is given up."""
    open_per_device: int = 100_000
    """A device that never comes back must not fill the store."""
    resident: int = 256 << 20
    """Bytes of bodies kept in memory; beyond it the oldest stay in the store only, until their
    turn comes."""
    context: int = 16 << 10
    """Bytes of a device's context report: it is kept in memory with the device."""
    subscriptions_per_device: int = 1000
    circles_per_device: int = 1000
    """Groups and queues."""
    bound_members: int = 1000
    """Of an atomic or claimable message: they are decided about in one commit."""
    claim_patience: Micros = 7 * DAY
    """How long a message can be claimed that has no deliver_before."""
    queue_length: int = 100_000
    """Messages that wait in one queue: consumers that never come must not fill the store."""
    retained: int = 10_000
    """Messages of one ranked topic that wait for one device; beyond it the worst go, whatever a
    subscription asks for."""
    fanout_batch: int = 500
    """Deliveries of one message in one commit: a large topic must not hold up everyone else's
    commit."""
    large_commit: int = 100
    """Events with which a commit is handed to the writer while another one is being written.
    Smaller ones are worth waiting for more."""
    window_messages: int = 1024
    window_bytes: int = 4 << 20
    """Credit given to a device: what it may send before the gateway has made it durable."""
    flight_messages: int = 4096
    flight_bytes: int = 4 << 20
    """Under way to one device at most, however large a window it names. Every round trip costs a
    commit, so the number bounds what one device can take in a second; the bytes bound what a slow
    link keeps waiting in buffers, where it can no longer expire."""
    carried_per_device: int = 128
    """With carriers at a time. Each round costs a commit; what is with a carrier can no longer be
    taken back."""
    carried_attempts: int = 3
    """For what left over the air and was never confirmed: the client may show every one of
    them."""
    carried_patience: Micros = DAY
    """How long a device is looked for that cannot be reached over the air, where the publisher
    sets no limit."""
    max_frame: int = (1 << 20) + 1024
    preserve: Micros = 7 * DAY
    heartbeat: Micros = 270 * SECOND
    """Below the five minutes after which many networks forget an idle connection; for a device that
    does not know better."""
    longest_heartbeat: Micros = 3600 * SECOND
    """What a device may ask for. One that is gone counts as there for two and a half times that."""


class Mailroom:
    """The open deliveries of all devices."""

    def __init__(
        self, *, registry: Registry, journal: Journal, keys: KeyMaker, limits: Limits
    ) -> None:
        self.registry = registry
        self.journal = journal
        self.keys = keys
        self.limits = limits
        self.moments = Moments()
        self.timers: Timers[Delivery | Session | Retransmission[Session] | Waker] = Timers()
        self.items: dict[int, Item] = {}
        self.effects: list[Effect] = []
        self.watched: Counter[int] = Counter()
        self.awaited: dict[tuple[int, int], Callable[[int], None]] = {}
        """Who wants to hear of the answer to a message of one device."""
        self.behaviours = Behaviours({})
        """By app, how its messages are treated; most apps have none."""
        self.plain = Decider(self)
        """Decides for everything that no feature decides about."""
        self.sender = Sender()
        """Sends to everyone for whom no feature sends."""
        self._sessions: dict[int, Session] = {}
        self._touched: list[Session] = []
        self._resident: dict[int, Item] = {}
        """Whose bodies are in memory, oldest first."""
        self._resident_bytes = 0
        self.open_deliveries = 0
        """Of all devices together."""

    def session(self, device: Device) -> Session:
        """The device's session; it begins with the first need for one."""
        session = self._sessions.get(device.number)
        if session is None:
            session = Session(device, preserve=self.limits.preserve, sender=self.sender)
            self._sessions[device.number] = session
            for opened in self.moments.opened:
                opened(session)
        return session

    def forget_session(self, device: Device) -> None:
        """The device is gone."""
        self._sessions.pop(device.number, None)

    def sessions(self) -> list[Session]:
        """Everyone of whom there is something to remember."""
        return list(self._sessions.values())

    def sessions_in_contact(self) -> list[Session]:
        """Everyone who is there now."""
        return [session for session in self._sessions.values() if session.channel]

    def own(self, message: Message) -> Item:
        """Keep a message until its last delivery has ended."""
        item = Item(message, self.plain)
        self.keep(item)
        for owned in self.moments.owned:
            owned(item)
        return item

    def keep(self, item: Item) -> None:
        """Find an item by its key from now on, and count its body if it is here."""
        key = item.stored_key
        self.items[key] = item
        if item.resident:
            self._resident[key] = item
            self._resident_bytes += item.size

    def forget(self, item: Item) -> None:
        """Find an item no longer."""
        key = item.stored_key
        self.items.pop(key, None)
        if self._resident.pop(key, None) is not None:
            self._resident_bytes -= item.size

    def release(self, item: Item) -> None:
        """Keep a message no longer, unless a delivery of it is open or to come."""
        if not item.deliveries and not item.spreading:
            self.forget(item)
            # They know each other: as a circle they would be left to the collector.
            observers, item.observers = item.observers, ()
            for observer in observers:
                observer.over(item)

    def open_delivery(self, item: Item, session: Session, now: Micros) -> Delivery:
        """Begin a delivery, in its device's mailbox; its first event is the caller's to record."""
        delivery = session.mailbox[item.message.key] = Delivery(item, session, now)
        self.open_deliveries += 1
        return delivery

    def touch(self, session: Session) -> None:
        """Something changed that may let the session send."""
        if not session.touched:
            session.touched = True
            self._touched.append(session)

    def touched(self) -> list[Session]:
        """Sessions to look at, each once."""
        sessions, self._touched = self._touched, []
        for session in sessions:
            session.touched = False
        return sessions

    def step(
        self, delivery: Delivery, step: Step, now: Micros, reason: str = "", *, code: int = 0
    ) -> Event:
        """Take one step of the life cycle and record it, with PAP's code where that says more. A
        step that is not in the table is a bug. Facts may be added to the event."""
        before = delivery.state
        state, kind = TRANSITIONS[before, step]
        session = delivery.session
        if before is SENDING:
            session.arrive(delivery)
        delivery.state = state
        delivery.changed_at = now
        event = self.journal.story(delivery, kind, now, reason)
        if delivery.seq >= 0:
            event.epoch = delivery.epoch
            event.seq = delivery.seq
            line = session.line
            if line.channel != delivery.sent_over:
                line = session.line_of(delivery.sent_over) or line
            event.link = line.link
        if state >= DELIVERED:
            delivery.code = code
            if session.sender is not self.sender:
                session.sender.ended(delivery, now)
            self._end(delivery)
        if self.watched:
            self.announce(delivery)
        return event

    def give_up(
        self, delivery: Delivery, step: Step, now: Micros, reason: str, *, code: int = 0
    ) -> Event:
        """End a delivery without a word of the device: by `step` if nothing of it ever left.

        Otherwise the application may have had it all the same, and nobody can tell.
        """
        if delivery.attempts:
            return self.step(delivery, Step.TIME_OUT, now, f"{reason}; the device may have had it")
        return self.step(delivery, step, now, reason, code=code)

    def watch(self, key: int) -> None:
        """Say `Changed` for this message from now on."""
        self.watched[key] += 1

    def unwatch(self, key: int) -> None:
        """One of those who watch a message does so no longer."""
        self.watched[key] -= 1
        if self.watched[key] <= 0:
            del self.watched[key]

    def named(self, app: str, name: str) -> Session:
        """The session of the device of this name; there must be one."""
        return self.session(self.registry.named(app, name))

    def announce(self, delivery: Delivery) -> None:
        """Tell those who watch the message, once the change is durable."""
        key = delivery.item.message.key
        if key in self.watched:
            change = Changed(key, delivery.session.device.number, delivery.state)
            self.journal.when_durable(lambda _: self.effects.append(change))

    def announce_message(self, key: int) -> None:
        """Tell those who watch a message that something was decided about it as a whole."""
        if key in self.watched:
            change = Changed(key, 0, None)
            self.journal.when_durable(lambda _: self.effects.append(change))

    def _end(self, delivery: Delivery) -> None:
        session = delivery.session
        item = delivery.item.unwrap(delivery)
        message = item.message
        mailbox = session.mailbox
        del mailbox[message.key]
        self.open_deliveries -= 1
        if not mailbox:
            mailbox.clear()  # An emptied table keeps its size, and most sessions are idle.
        if message.replace_key is not None:
            session.not_replaceable(delivery)
        item.discard(delivery)
        for observer in item.observers:
            observer.ended(delivery)
        if delivery.decider is not self.plain:
            delivery.decider.ended(delivery)
        self.release(item)

    def evict(self) -> None:
        """Leave the oldest bodies to the store, as far as it has them, when memory is tight."""
        resident = self._resident
        while self._resident_bytes > self.limits.resident:
            item = next(iter(resident.values()))
            if item.stored_key > self.journal.durable_key:
                return
            del resident[item.stored_key]
            self._resident_bytes -= item.size
            item.evict()

    def refill(self, item: Item, body: bytes) -> None:
        """A body has come back from the store."""
        if not item.resident:
            item.refill(body)
            if item.stored_key in self.items:
                self._resident[item.stored_key] = item
                self._resident_bytes += item.size
