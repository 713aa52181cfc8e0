"""Open deliveries in memory: a message, its deliveries, and the state of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lasthop.core.feature import Decider, DeliveryObserver, Gate
from lasthop.core.lane import Lane
from lasthop.core.lifecycle import DELIVERED, PENDING, State
from lasthop.events import Event
from lasthop.message import Message
from lasthop.store.commit import DeliveryRow

if TYPE_CHECKING:
    from lasthop.core.session import Session


class Item:
    """A message with open deliveries. Its body may be in the store only, to save memory."""

    __slots__ = (
        "decider",
        "deliveries",
        "gates",
        "message",
        "observers",
        "resident",
        "size",
        "spreading",
    )

    def __init__(self, message: Message, decider: Decider) -> None:
        self.message = message
        self.decider = decider
        """The decider of the steps of the message's deliveries, unless a part of the session
        decides."""
        self.size = len(message.body)
        self.resident = True
        self.gates: tuple[Gate, ...] = ()
        """The gates that each of the message's deliveries has to pass."""
        self.observers: tuple[DeliveryObserver, ...] = ()
        """The observers that are told what becomes of the message's deliveries."""
        self.spreading = False
        """Whether more deliveries of the message are to begin, so that it is kept even when none is
        open."""
        self.deliveries: list[Delivery] = []
        """The open deliveries of the message, in no particular order."""

    @property
    def stored_key(self) -> int:
        """The key under which the store has the body."""
        return self.message.key

    def observe(self, observer: DeliveryObserver) -> None:
        """Add an observer of the message's deliveries, unless it is one already."""
        if observer not in self.observers:
            self.observers = (*self.observers, observer)

    def unwrap(self, delivery: Delivery) -> Item:
        """Return the item of the message itself, after a delivery has ended; an item with content
        that was changed for that delivery overrides this method."""
        return self

    def discard(self, delivery: Delivery) -> None:
        """Remove a delivery that has ended. The last of the list takes its place, so that no list
        of a hundred thousand is searched."""
        last = self.deliveries.pop()
        if last is not delivery:
            self.deliveries[delivery.index] = last
            last.index = delivery.index

    def evict(self) -> None:
        """Drop the body from memory; the store has it."""
        self.message.body = b""
        self.resident = False

    def refill(self, body: bytes) -> None:
        """Put the body, which was read from the store, back into memory."""
        self.message.body = body
        self.resident = True


class Delivery:
    """One message for one device: the unit of the life cycle."""

    __slots__ = (
        "ahead",
        "attempts",
        "changed_at",
        "code",
        "decider",
        "departure",
        "dirty",
        "epoch",
        "index",
        "item",
        "lane",
        "last_event",
        "place",
        "priority",
        "redelivered",
        "reply",
        "sent_in",
        "sent_over",
        "seq",
        "session",
        "state",
    )

    def __init__(self, item: Item, session: Session, now: int) -> None:
        """Open one more delivery of the item."""
        message = item.message
        self.item = item
        self.session = session
        self.decider = item.decider
        """The decider of the delivery's steps: that of its message, or a part of the session."""
        self.priority = message.priority
        self.place = message.key
        """The delivery's turn to leave among those of its priority: lower first."""
        self.state: State = PENDING
        self.epoch = -1
        self.seq = -1
        self.lane: Lane[Any] = session.lane
        """The lane that `seq` is a number of."""
        self.sent_in = 0
        """The number of the contact in which the delivery last left; in a later contact it may have
        to leave again."""
        self.sent_over = 0
        """The channel over which the delivery last left; 0 if it never left."""
        self.ahead = False
        """Whether the body is with the device already, so that the message follows without it."""
        self.attempts = 0
        """How often the delivery was handed to a link. Above zero the device may have it, whatever
        the gateway knows."""
        self.changed_at = now
        self.last_event = -1
        self.redelivered = False
        self.reply = 0
        self.code = 0
        self.departure: Event | None = None
        """The event of the last transmission until it is written to the log; otherwise None."""
        self.dirty = False
        self.index = len(item.deliveries)
        """The delivery's index in the list of its item's open deliveries."""
        item.deliveries.append(self)

    def __lt__(self, other: Delivery) -> bool:
        """Order two deliveries that have the same place, by the turn of their deciders."""
        return self.decider.turn < other.decider.turn

    @property
    def revocable(self) -> bool:
        """Whether the delivery can be taken back reliably: no part of it has left."""
        return self.state is PENDING and not self.attempts

    def row(self) -> DeliveryRow:
        """Return the delivery as the store keeps it."""
        state = self.state
        return DeliveryRow(
            self.item.message.key,
            self.session.device.number,
            int(state),
            state < DELIVERED,
            self.epoch,
            self.seq,
            self.attempts,
            self.changed_at,
            self.last_event,
            self.redelivered,
            self.reply,
            self.code,
            self.ahead,
            self.lane.id if self.seq >= 0 else 0,
        )
