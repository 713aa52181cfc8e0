"""Open deliveries in memory: one message, its deliveries, and what is kept of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.core.feature import Decider, DeliveryObserver, Gate
from lasthop.core.lifecycle import DELIVERED, PENDING, State
from lasthop.events import Event
from lasthop.message import Message
from lasthop.store.commit import DeliveryRow

if TYPE_CHECKING:
    from lasthop.core.session import Session


class Item:
    """A message with open deliveries. Its body may have been left to the store to save memory."""

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
        """Who decides the steps of its deliveries, unless something of the device does."""
        self.size = len(message.body)
        self.resident = True
        self.gates: tuple[Gate, ...] = ()
        """What each of its deliveries has to pass."""
        self.observers: tuple[DeliveryObserver, ...] = ()
        """Who is told what becomes of its deliveries."""
        self.spreading = False
        """More deliveries of it are to come, so that it is kept even when none is open."""
        self.deliveries: list[Delivery] = []
        """The open ones, in no particular order."""

    @property
    def stored_key(self) -> int:
        """The key under which the store has the body."""
        return self.message.key

    def observe(self, observer: DeliveryObserver) -> None:
        """Tell an observer of what becomes of the deliveries, too."""
        if observer not in self.observers:
            self.observers = (*self.observers, observer)

    def unwrap(self, delivery: Delivery) -> Item:
        """The message itself, of which this may be what one delivery makes: that is over."""
        return self

    def discard(self, delivery: Delivery) -> None:
        """One has ended. The last takes its place: of a hundred thousand none is searched."""
        last = self.deliveries.pop()
        if last is not delivery:
            self.deliveries[delivery.index] = last
            last.index = delivery.index

    def evict(self) -> None:
        """Drop the body; the store has it."""
        self.message.body = b""
        self.resident = False

    def refill(self, body: bytes) -> None:
        """Take the body back from the store."""
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
        """One more of the item's deliveries is open."""
        message = item.message
        self.item = item
        self.session = session
        self.decider = item.decider
        """The decider of its steps: the one of its message, or a part of the session."""
        self.priority = message.priority
        self.place = message.key
        """Its turn to leave among those of its priority: lower first."""
        self.state: State = PENDING
        self.epoch = -1
        self.seq = -1
        self.sent_in = 0
        """The contact in which it last left: in the same one the device may have it."""
        self.sent_over = 0
        """The channel over which it last left."""
        self.ahead = False
        """Its body is with the device already, and it follows without."""
        self.attempts = 0
        """How often it was handed to a link. Above zero the device may have it, whatever we know
        of it."""
        self.changed_at = now
        self.last_event = -1
        self.redelivered = False
        self.reply = 0
        self.code = 0
        self.departure: Event | None = None
        """That it has left, as long as the log does not say so."""
        self.dirty = False
        self.index = len(item.deliveries)
        """Where it stands among the open deliveries of its item."""
        item.deliveries.append(self)

    def __lt__(self, other: Delivery) -> bool:
        """Whose turn it is of two with the same place."""
        return self.decider.turn < other.decider.turn

    @property
    def revocable(self) -> bool:
        """Whether it can be taken back, and truly: no part of it has left."""
        return self.state is PENDING and not self.attempts

    def row(self) -> DeliveryRow:
        """The delivery as the store keeps it."""
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
        )
