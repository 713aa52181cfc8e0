"""What decides about messages of this device on their way out: an order, which gives numbers and
lets messages leave, and a gate, which lets some wait until what goes ahead of them is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from lasthop.clock import Micros
from lasthop.device.message import Refusal
from lasthop.device.outgoing import Outgoing
from lasthop.wire.hop.frames import Frame, MessageFrame, Piece


class Transferable(NamedTuple):
    """A transfer that could send bytes, if somebody let it."""

    key: int
    size: int
    queue: str | None
    deadline: Micros | None


class PieceSource(Protocol):
    """Whoever has something to send in pieces."""

    def next_piece(self, allow: Callable[[int], int] | None = None) -> Piece | None:
        """The piece that leaves when the last one has left; `allow` says how many bytes of a
        transfer may."""
        ...

    def transferable(self, most: int) -> Iterator[Transferable]:
        """Transfers that could send something: of a body all that is left of it, of a stream at
        `most` so many bytes."""
        ...

    def sends(self, key: int) -> bool:
        """Whether something is still to go under this key."""
        ...


class OutboxGate:
    """Holds back messages until what goes ahead of them is at the gateway. This one holds none."""

    def carries(self, frame: MessageFrame) -> bool:
        """Whether a message need not fit into a frame. Raises TooLarge if it fits nowhere."""
        return False

    def admitted(self, item: Outgoing) -> None:
        """A message is in the outbox, from now on or since an earlier life."""

    def forgotten(self, item: Outgoing) -> None:
        """A message is not in the outbox any more."""

    def start(self, item: Outgoing, *, durable: bool, metered: bool = False) -> None:
        """Send what goes ahead of a message, once that is `durable`; if it is `metered`, as far as
        its queue is granted bytes."""

    def stop(self, item: Outgoing) -> None:
        """Send no more of what goes ahead of a message."""

    def abort(self, item: Outgoing, reason: str) -> None:
        """A message will never leave, and the gateway need not keep what went ahead of it."""


class OutboxOrder:
    """Gives messages of this device their numbers, and lets them leave."""

    more = False
    """Whether more could leave when what is leaving now has left."""
    stuck = False
    """Whether a new contact is needed before anything more gets through."""
    due: Micros | None = None
    """When to decide again, unless something happens before."""

    @property
    def waiting(self) -> int:
        """How many messages have no number."""
        return 0

    def begin(self, items: Iterable[Outgoing]) -> None:
        """Take over from another order: these have no number, the oldest first."""

    def end(self) -> list[Outgoing]:
        """Another order takes over; returns what has no number, the oldest first."""
        return []

    def start_over(self, items: list[Outgoing]) -> None:
        """A new epoch began: these have lost their numbers."""

    def place(self, item: Outgoing) -> None:
        """A message was queued."""

    def held(self, item: Outgoing) -> None:
        """A durable message has to wait at the gate, again."""

    def let_go(self, item: Outgoing) -> None:
        """What had to go ahead of a message is there."""

    def refuse(self, item: Outgoing, refusal: Refusal) -> None:
        """What had to go ahead of a message never will."""

    def skipped(self, number: int) -> None:
        """The gateway need not wait for a number."""

    def decide(self, now: Micros, *, budget: int | None = None) -> None:
        """Choose what leaves after the next change: no more than `budget` bytes and a message."""

    def frames(self, durable: int, *, budget: int | None = None) -> list[Frame]:
        """What leaves now, of the numbers below `durable`: no more than `budget` bytes, and one
        message."""
        return []

    def routed(self, *, piece: bool) -> dict[int, list[Frame]]:
        """What leaves now over particular channels; with `piece` one may be last."""
        return {}

    def next_piece(self, source: PieceSource) -> Piece | None:
        """The piece that leaves over the channel that is spoken over."""
        return None

    def acknowledged(self, items: Iterable[Outgoing], now: Micros) -> None:
        """The gateway has these."""

    def credit_changed(self) -> None:
        """The gateway takes more, or less, at a time."""

    def resumed(self, received: int) -> None:
        """A channel is open, and the gateway says that it has the numbers below."""

    def again(self) -> None:
        """What is under way may have been lost with one of several channels."""

    def lost(self) -> None:
        """No channel is open any more."""
