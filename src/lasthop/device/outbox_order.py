"""The interfaces that decide about a device's outgoing messages: an order, which numbers messages
and lets them leave, and a gate, which holds a message with a large body back until the gateway has
the body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from lasthop.clock import Micros
from lasthop.device.message import Refusal
from lasthop.device.outgoing import Outgoing
from lasthop.device.outgoing_lane import OutgoingLane
from lasthop.wire.hop.frames import Frame, MessageFrame, Piece


class Transferable(NamedTuple):
    """A transfer that has bytes to send and waits for permission."""

    key: int
    size: int
    queue: str | None
    deadline: Micros | None


class PieceSource(Protocol):
    """The transfers that have pieces to send."""

    def next_piece(self, allow: Callable[[int], int] | None = None) -> Piece | None:
        """Return the next piece to send, or None; `allow` returns how many bytes of a transfer may
        leave."""
        ...

    def transferable(self, most: int) -> Iterator[Transferable]:
        """Yield the transfers that could send bytes, with the number of bytes: for a body all that
        is left, for a stream at most `most`."""
        ...

    def sends(self, key: int) -> bool:
        """Whether the transfer of this key still has something to send."""
        ...


class OutboxGate:
    """Holds a message back until the gateway has its body, which is sent ahead. This base class
    holds no message back."""

    def carries(self, frame: MessageFrame) -> bool:
        """Whether the body of this message is sent ahead in pieces, so that the message may be
        larger than a frame. Raises TooLarge if the body is too large even for that."""
        return False

    def admitted(self, item: Outgoing) -> None:
        """Note that a message is in the outbox, new or restored."""

    def forgotten(self, item: Outgoing) -> None:
        """Note that a message is no longer in the outbox."""

    def start(self, item: Outgoing, *, durable: bool, metered: bool = False) -> None:
        """Start to send the body that goes ahead of a message. It leaves when the message is
        `durable`; if `metered`, only as many bytes leave as are granted to the message's queue."""

    def stop(self, item: Outgoing) -> None:
        """Stop sending the body that goes ahead of a message."""

    def abort(self, item: Outgoing, reason: str) -> None:
        """Give up the body that went ahead of a message that will never leave; the gateway may drop
        it."""


class OutboxOrder:
    """Gives the messages of this device their numbers, and decides when they leave."""

    more = False
    """Whether more messages could leave after the frames that are leaving now."""
    stuck = False
    """Whether nothing more can leave until the device connects again."""
    due: Micros | None = None
    """The time of the next decision, unless something happens before; None if there is none."""

    @property
    def waiting(self) -> int:
        """The number of messages without a sequence number."""
        return 0

    def begin(self, items: Iterable[Outgoing]) -> None:
        """Take over the messages that have no number from another order; the oldest is first."""

    def end(self) -> list[Outgoing]:
        """Return the messages that have no number, the oldest first, because another order takes
        over."""
        return []

    def start_over(self, items: list[Outgoing]) -> None:
        """Decide again about the messages that lost their numbers because a new epoch began."""

    def place(self, item: Outgoing) -> None:
        """Decide about a message that was queued: give it a number, or let it wait."""

    def held(self, item: Outgoing) -> None:
        """Note that a durable message must wait again until the gateway has its body."""

    def let_go(self, item: Outgoing) -> None:
        """Note that the body that goes ahead of a message has arrived at the gateway."""

    def refuse(self, item: Outgoing, refusal: Refusal) -> None:
        """Give up a message because the body that goes ahead of it cannot be sent."""

    def skipped(self, lane: OutgoingLane, number: int) -> None:
        """Note that the gateway need not wait for the message of this number."""

    def decide(self, now: Micros, *, budget: int | None = None) -> None:
        """Choose the messages that leave after the next change. They have at most `budget` bytes,
        except that the last message may exceed that."""

    def frames(self, *, budget: int | None = None) -> list[Frame]:
        """Return the frames that leave now, of messages with durable numbers. They have at most
        `budget` bytes, except that the last message may exceed that."""
        return []

    def routed(self, *, piece: bool) -> dict[int, list[Frame]]:
        """Return the frames that leave now over particular channels; with `piece` the last may be a
        piece."""
        return {}

    def next_piece(self, source: PieceSource) -> Piece | None:
        """Return the next piece for the main channel; None if there is none."""
        return None

    def acknowledged(self, items: Iterable[Outgoing], now: Micros) -> None:
        """Note that the gateway has acknowledged these messages."""

    def credit_changed(self) -> None:
        """Note that the gateway grants more, or less, credit."""

    def resumed(self) -> None:
        """Note that a channel is open and the gateway has said which numbers it has."""

    def again(self) -> None:
        """Note that messages under way may have been lost with one of several channels."""

    def lost(self) -> None:
        """Note that no channel is open any more."""
