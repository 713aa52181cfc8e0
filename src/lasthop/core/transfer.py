"""Bodies and streams that travel to a device in pieces: their progress, and the source of their
bytes."""

from __future__ import annotations

from typing import Protocol

from lasthop.clock import Micros
from lasthop.message import Quality
from lasthop.wire.hop.frames import Ending
from lasthop.wire.hop.transfer import Sending


class TransferSource(Protocol):
    """A body or a stream that is sent to a device in pieces."""

    @property
    def priority(self) -> int:
        """The priority of the source; pieces of the source with the highest priority go first."""
        ...

    @property
    def queue(self) -> str | None:
        """The queue name of the message: the bytes of the source count towards the limits of this
        queue."""
        ...

    @property
    def quality(self) -> Quality | None:
        """The quality of the link that the publisher requires; None if it requires none."""
        ...

    @property
    def deadline(self) -> Micros | None:
        """The time after which no byte of the source may leave; None if there is no such time."""
        ...

    @property
    def available(self) -> int:
        """The number of bytes, counted from the beginning, that may leave now."""
        ...

    def read(self, offset: int, size: int) -> bytes | None:
        """Return `size` bytes from `offset`; None if they have to be fetched from the store, which
        the source has asked for."""
        ...

    def refusal(self, now: Micros) -> str | None:
        """Return why no more bytes of the source may leave; None if they may."""
        ...

    def announced(self) -> bool:
        """Return whether the device knows what the pieces belong to, if it has to know that."""
        ...

    @property
    def floor(self) -> int:
        """The offset below which the gateway no longer has the bytes."""
        ...

    def lost(self, now: Micros) -> None:
        """Give the transfer up: the device needs bytes below `floor`, because it has lost what it
        had received."""
        ...

    def taken(self, offset: int, now: Micros) -> None:
        """Note that the device has all bytes below `offset`."""
        ...

    def last_word(self) -> Ending | None:
        """Return how the transfer ends, once that is known; None until then."""
        ...

    def confirmed(self, now: Micros) -> None:
        """Note that the device knows the ending, and has every byte if the ending was good."""
        ...

    def stopped(self, reason: str, now: Micros) -> None:
        """Note that the device wants no more of the transfer."""
        ...


class Transfer:
    """A body or a stream on its way to one device."""

    __slots__ = ("sending", "source")

    def __init__(self, sending: Sending, source: TransferSource) -> None:
        self.sending = sending
        self.source = source

    def place(self) -> tuple[int, int]:
        """Return the sort key of the next piece: by priority; transfers of the same priority take
        turns."""
        return -self.source.priority, self.sending.turn
