"""Every open delivery, and the only way in which one changes its state.

`Deliveries` is the state that acceptance, dispatch and contacts share. `step` is the sole place
where a delivery moves through the life cycle: it looks the step up in the table, records the event
and the row, and forgets deliveries that have ended.
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
from lasthop.core.lifecycle import DELIVERED, PENDING, SENDING, TRANSITIONS, Step
from lasthop.core.limits import Limits
from lasthop.core.moments import Moments
from lasthop.core.registry import Device, Registry
from lasthop.core.rights.rights import Rights
from lasthop.core.session import Session
from lasthop.core.timers import Timers
from lasthop.events import Event
from lasthop.message import KeyMaker, Message

NOBODY_THERE = "it is immediate, and the device cannot be reached"
"""The reason for which an immediate message is dropped."""


class TimerTarget(Protocol):
    """An object, other than a delivery or a session, that sets a timer."""

    def woken(self, now: Micros) -> None:
        """Act on a timer that the object set, maybe long ago."""
        ...


class Deliveries:
    """The open deliveries of all devices, and what is shared by all who work on them."""

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
        """The behaviour of the messages of each app; most apps have none."""
        self.unordered: frozenset[str] = frozenset()
        """The queues whose messages may be handed over out of order, where there are lanes."""
        self.rights: Rights | None = None
        """The rights of devices and publishers; None if everything is allowed."""
        self.plain = Decider(self)
        """The decider of every delivery that no feature decides about."""
        self.sender: Sender
        """The sender for devices that have no sender of a feature; the spine sets it."""
        self.away_sender: AwaySender
        """The sender for devices that are not in contact and have no sender of a feature."""
        self.by_number: dict[int, Session] = {}
        """All sessions that have been made, by device number."""
        self._touched: list[Session] = []
        self._resident: dict[int, Item] = {}
        """The items whose bodies are in memory by key, oldest first."""
        self._resident_bytes = 0
        self.open_deliveries = 0
        """Number of open deliveries of all devices."""

    def session(self, device: Device) -> Session:
        """Return the device's session, which is made when it is first needed."""
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
        """Forget the session of a device that was removed."""
        self.by_number.pop(device.number, None)

    def sessions(self) -> list[Session]:
        """Return all sessions that have been made."""
        return list(self.by_number.values())

    def sessions_in_contact(self) -> list[Session]:
        """Return the sessions of all devices that have a channel now."""
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
        """Register an item under its key, and count its body if it is in memory."""
        key = item.stored_key
        self.items[key] = item
        if item.resident:
            self._resident[key] = item
            self._resident_bytes += item.size

    def forget(self, item: Item) -> None:
        """Remove an item from those registered by key, and stop counting its body."""
        key = item.stored_key
        self.items.pop(key, None)
        if self._resident.pop(key, None) is not None:
            self._resident_bytes -= item.size

    def release(self, item: Item) -> None:
        """Forget a message that has no open delivery and none that is still to begin."""
        if not item.deliveries and not item.spreading:
            key = item.message.key
            self.items.pop(key, None)
            if self._resident.pop(key, None) is not None:
                self._resident_bytes -= item.size
            # Item and observers refer to each other: a cycle would be left to the garbage
            # collector.
            if item.observers:
                observers, item.observers = item.observers, ()
                for observer in observers:
                    observer.over(item)

    def open_delivery(self, item: Item, session: Session, now: Micros) -> Delivery:
        """Open a delivery in its device's mailbox; the caller records its first event."""
        delivery = session.mailbox[item.message.key] = Delivery(item, session, now)
        self.open_deliveries += 1
        return delivery

    def touch(self, session: Session) -> None:
        """Let `settle` look at a session, because something changed that may let it send."""
        if not session.touched:
            session.touched = True
            self._touched.append(session)

    def touched(self) -> list[Session]:
        """Return the sessions that were touched since the last call, each once."""
        sessions, self._touched = self._touched, []
        for session in sessions:
            session.touched = False
        return sessions

    def step(
        self, delivery: Delivery, step: Step, now: Micros, reason: str = "", *, code: int = 0
    ) -> Event:
        """Take one step of the life cycle and record it, with PAP's code if the step ends the
        delivery. A step that is not in the table is a bug. The caller may add facts to the
        event."""
        before = delivery.state
        state, kind = TRANSITIONS[before, step]
        session = delivery.session
        # It is under way no longer, whatever follows: its credit is free.
        if before is SENDING:
            delivery.lane.arrive(delivery.seq, delivery.item.size)
        delivery.state = state
        delivery.changed_at = now
        event = self.commits.record_step(delivery, kind, now, reason)
        if delivery.seq >= 0:
            event.epoch = delivery.epoch
            event.seq = delivery.seq
            event.lane = delivery.lane.id
            line = session.line
            # The channel may have ended, or another one may be in use since: name the one it left
            # over.
            if line.channel != delivery.sent_over:
                line = session.line_of(delivery.sent_over) or line
            event.link = line.link
        if state >= DELIVERED:
            delivery.code = code
            # The plain sender keeps nothing for a delivery, and most sessions have it.
            if session.sender is not self.sender:
                session.sender.ended(delivery, now)
            self._end(delivery)
        if self.watched:
            self.announce(delivery)
        return event

    def give_up(
        self, delivery: Delivery, step: Step, now: Micros, reason: str, *, code: int = 0
    ) -> Event:
        """End a delivery without a report of the device: by `step` if nothing of it ever left.

        Otherwise the application may have had the message all the same, and the delivery times
        out.
        """
        # A link had it: to call it expired or cancelled could be false, `timed out` is true.
        if delivery.attempts:
            return self.step(delivery, Step.TIME_OUT, now, f"{reason}; the device may have had it")
        return self.step(delivery, step, now, reason, code=code)

    def recall(self, delivery: Delivery, now: Micros) -> bool:
        """Return whether a delivery can be taken back reliably. One that waits inside a carrier is
        taken from the carrier for that, and leaves again later unless its caller ends it."""
        if delivery.revocable:
            return True
        if delivery.state is not SENDING:
            return False
        return any(recall(delivery, now) for recall in self.moments.recall)

    def drop_immediate(self, session: Session, now: Micros) -> None:
        """Drop the immediate messages that have not left for a device that cannot be reached any
        more."""
        for delivery in list(session.mailbox.values()):
            if delivery.item.message.immediate and delivery.state is PENDING:
                self.give_up(delivery, Step.GIVE_UP, now, NOBODY_THERE)

    def watch(self, key: int) -> None:
        """Report changes of this message as `Changed` effects, until `unwatch` was called as often
        as `watch`."""
        self.watched[key] += 1

    def unwatch(self, key: int) -> None:
        """End one caller's watch of a message."""
        self.watched[key] -= 1
        if self.watched[key] <= 0:
            del self.watched[key]

    def named(self, app: str, name: str) -> Session:
        """Return the session of the device of this name; raise an error if there is no such
        device."""
        return self.session(self.registry.named(app, name))

    def announce(self, delivery: Delivery) -> None:
        """Report a changed delivery to those who watch its message, once the change is durable."""
        key = delivery.item.message.key
        if key in self.watched:
            change = Changed(key, delivery.session.device.number, delivery.state)
            self.commits.when_durable(lambda _: self.effects.append(change))

    def announce_message(self, key: int) -> None:
        """Report to those who watch a message that it was decided about as a whole."""
        if key in self.watched:
            change = Changed(key, 0, None)
            self.commits.when_durable(lambda _: self.effects.append(change))

    def _end(self, delivery: Delivery) -> None:
        session = delivery.session
        item = delivery.item
        # The content may be a revision for this delivery only, which ends with it.
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
        """Drop bodies that the store has from memory, oldest first, until they are within the limit
        `resident`."""
        resident = self._resident
        while self._resident_bytes > self.limits.resident:
            item = next(iter(resident.values()))
            if item.stored_key > self.commits.durable_key:
                # The store lacks the oldest: those behind it are newer, or were just read back.
                return
            del resident[item.stored_key]
            self._resident_bytes -= item.size
            item.evict()

    def refill(self, item: Item, body: bytes) -> None:
        """Put a body that came back from the store into memory."""
        if not item.resident:
            item.refill(body)
            if item.stored_key in self.items:
                self._resident[item.stored_key] = item
                self._resident_bytes += item.size
