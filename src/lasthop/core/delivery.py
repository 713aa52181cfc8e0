"""Open deliveries in memory: one message, its deliveries, and what is kept of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.core.lifecycle import DELIVERED, PENDING, State
from lasthop.events import Event
from lasthop.message import Message
from lasthop.store.commit import DeliveryRow

if TYPE_CHECKING:
    from lasthop.core.groups.bond import Bond
    from lasthop.core.push import Push
    from lasthop.core.session import Session


CARRIED = -1
"""In place of a channel: it is with a carrier, over the air."""


class Item:
    """A message with open deliveries. Its body may have been left to the store to save memory."""

    __slots__ = ("bond", "deliveries", "message", "push", "resident", "size", "spreading")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.size = len(message.body)
        self.resident = True
        self.push: Push | None = None
        """What an initiator asked for, if it came as a push of PAP."""
        self.bond: Bond | None = None
        """What makes its deliveries depend on each other, if anything does."""
        self.spreading = False
        """More deliveries of it are to come, so that it is kept even when none is open."""
        self.deliveries: list[Delivery] = []
        """The open ones, in no particular order."""

    @property
    def stored_key(self) -> int:
        """The key under which the store has the body."""
        return self.message.key

    def discard(self, delivery: Delivery) -> None:
        """One has ended. The last takes its place: of a hundred thousand none is searched."""
        last = self.deliveries.pop()
        if last is not delivery:
            self.deliveries[delivery.place] = last
            last.place = delivery.place

    def evict(self) -> None:
        """Drop the body; the store has it."""
        self.message.body = b""
        self.resident = False

    def refill(self, body: bytes) -> None:
        """Take the body back from the store."""
        self.message.body = body
        self.resident = True


class Revision(Item):
    """What a surrogate made of a message for one device: the same message, with other content,
    which is stored under a key of its own."""

    __slots__ = ("_key", "origin")

    def __init__(self, origin: Item, message: Message, key: int, size: int) -> None:
        super().__init__(message)
        self.origin = origin
        self.size = size
        self.resident = len(message.body) == size
        self.push = origin.push
        self._key = key

    @property
    def stored_key(self) -> int:
        return self._key


class Delivery:
    """One message for one device: the unit of the life cycle."""

    __slots__ = (
        "ahead",
        "attempts",
        "changed_at",
        "code",
        "departure",
        "dirty",
        "epoch",
        "item",
        "last_event",
        "place",
        "redelivered",
        "reply",
        "sent_in",
        "sent_over",
        "seq",
        "session",
        "state",
    )

    ranked = False
    """Whether it belongs to a ranked topic: see `core.feeds`."""
    keep = False
    """Whether the device keeps it until it is read."""
    stamp = 0
    turn = 0

    def __init__(self, item: Item, session: Session, now: int) -> None:
        """One more of the item's deliveries is open."""
        self.item = item
        self.session = session
        self.state: State = PENDING
        self.epoch = -1
        self.seq = -1
        self.sent_in = 0
        """The contact in which it last left: in the same one the device may have it."""
        self.sent_over = 0
        """The channel over which it last left, or `CARRIED`."""
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
        self.place = len(item.deliveries)
        item.deliveries.append(self)

    def ended(self) -> None:
        """It is over; whoever decides about it wants to know."""

    def __lt__(self, other: Delivery) -> bool:
        """Whose turn it is of two with the same stamp."""
        return self.turn < other.turn

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
