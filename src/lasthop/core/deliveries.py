"""Every open delivery, and the only way in which one changes its state.

The mailroom is the state that acceptance, dispatch and contact share. `step` is the sole place
where a delivery moves through the life cycle: it looks the step up in the table, records the event
and the row, and forgets what has ended.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from lasthop.clock import Micros
from lasthop.core.apps.behaviour import Behaviours
from lasthop.core.commits import Commits
from lasthop.core.contacts.retransmission import Retransmission
from lasthop.core.delivery import Delivery, Item
from lasthop.core.effects import Changed, Effect
from lasthop.core.feature import AwaySender, Decider, Sender
from lasthop.core.lifecycle import DELIVERED, SENDING, TRANSITIONS, Step
from lasthop.core.limits import Limits
from lasthop.core.moments import Moments
from lasthop.core.registry import Device, Registry
from lasthop.core.session import Session
from lasthop.core.timers import Timers
from lasthop.events import Event
from lasthop.message import KeyMaker, Message


class TimerTarget(Protocol):
    """Something else that wants to be told when its time has come."""

    def woken(self, now: Micros) -> None:
        """The time has come that it asked for, maybe long ago."""
        ...


class Deliveries:
    """The open deliveries of all devices."""

    def __init__(
        self, *, registry: Registry, commits: Commits, keys: KeyMaker, limits: Limits
    ) -> None:
        self.registry = registry
        self.commits = commits
        self.keys = keys
        self.limits = limits
        self.moments = Moments()
        self.timers: Timers[Delivery | Session | Retransmission[Session] | TimerTarget] = Timers()
        self.items: dict[int, Item] = {}
        self.effects: list[Effect] = []
        self.watched: Counter[int] = Counter()
        self.behaviours = Behaviours({})
        """By app, how its messages are treated; most apps have none."""
        self.plain = Decider(self)
        """Decides for everything that no feature decides about."""
        self.sender: Sender
        """Sends to everyone for whom no feature sends; the gateway sets it."""
        self.away_sender: AwaySender
        """The same for those who are not in contact."""
        self.by_number: dict[int, Session] = {}
        """The sessions of all devices of whom there is something to remember."""
        self._touched: list[Session] = []
        self._resident: dict[int, Item] = {}
        """Whose bodies are in memory, oldest first."""
        self._resident_bytes = 0
        self.open_deliveries = 0
        """How many deliveries of all devices are open."""

    def session(self, device: Device) -> Session:
        """The device's session; it begins with the first need for one."""
        session = self.by_number.get(device.number)
        if session is None:
            session = Session(
                device,
                preserve=self.limits.preserve,
                sender=self.sender,
                away_sender=self.away_sender,
            )
            self.by_number[device.number] = session
            for opened in self.moments.opened:
                opened(session)
        return session

    def forget_session(self, device: Device) -> None:
        """Forget the session of a device that is gone."""
        self.by_number.pop(device.number, None)

    def sessions(self) -> list[Session]:
        """All sessions of which there is something to remember."""
        return list(self.by_number.values())

    def sessions_in_contact(self) -> list[Session]:
        """The sessions of all devices that are in contact now."""
        return [session for session in self.by_number.values() if session.channel]

    def own(self, message: Message) -> Item:
        """Keep a message until its last delivery has ended."""
        item = Item(message, self.plain)
        self.items[message.key] = self._resident[message.key] = item
        self._resident_bytes += item.size
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
        """Let an item be found by its key no longer."""
        key = item.stored_key
        self.items.pop(key, None)
        if self._resident.pop(key, None) is not None:
            self._resident_bytes -= item.size

    def release(self, item: Item) -> None:
        """Keep a message no longer, unless a delivery of it is open or to come."""
        if not item.deliveries and not item.spreading:
            key = item.message.key
            self.items.pop(key, None)
            if self._resident.pop(key, None) is not None:
                self._resident_bytes -= item.size
            # They know each other: as a circle they would be left to the collector.
            if item.observers:
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
            session.lane.arrive(delivery.seq, delivery.item.size)
        delivery.state = state
        delivery.changed_at = now
        event = self.commits.record_step(delivery, kind, now, reason)
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
            self.commits.when_durable(lambda _: self.effects.append(change))

    def announce_message(self, key: int) -> None:
        """Tell those who watch a message that something was decided about it as a whole."""
        if key in self.watched:
            change = Changed(key, 0, None)
            self.commits.when_durable(lambda _: self.effects.append(change))

    def _end(self, delivery: Delivery) -> None:
        session = delivery.session
        item = delivery.item
        if type(item) is not Item:
            item = item.unwrap(delivery)
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
            if item.stored_key > self.commits.durable_key:
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
