"""What is large or has no end travels to a device in pieces: how far it is, and where its bytes
come from."""

from __future__ import annotations

from typing import Protocol

from lasthop.clock import Micros
from lasthop.message import Quality
from lasthop.wire.hop.frames import Ending
from lasthop.wire.hop.transfer import Sending


class Source(Protocol):
    """Something that is sent to a device in pieces."""

    @property
    def priority(self) -> int:
        """Pieces of the highest one go first."""
        ...

    @property
    def queue(self) -> str | None:
        """Whose limits its bytes count towards."""
        ...

    @property
    def quality(self) -> Quality | None:
        """What its publisher requires of the link."""
        ...

    @property
    def deadline(self) -> Micros | None:
        """When it is too late for any of it."""
        ...

    @property
    def available(self) -> int:
        """Bytes, counted from the beginning, that may leave."""
        ...

    def read(self, offset: int, size: int) -> bytes | None:
        """Some of them; `None`: they have to be fetched first, which has been asked for."""
        ...

    def refusal(self, now: Micros) -> str | None:
        """Why none of it may leave any more."""
        ...

    def announced(self) -> bool:
        """Whether the device knows what the pieces belong to, as far as it must."""
        ...

    @property
    def floor(self) -> int:
        """What is below is not here any more."""
        ...

    def lost(self, now: Micros) -> None:
        """The device is behind that: it has lost what it had."""
        ...

    def taken(self, offset: int, now: Micros) -> None:
        """The device has what is below."""
        ...

    def last_word(self) -> Ending | None:
        """How it ends, when that is known."""
        ...

    def confirmed(self, now: Micros) -> None:
        """The device has heard the last word, and has everything if that was good."""
        ...

    def stopped(self, reason: str, now: Micros) -> None:
        """The device wants no more."""
        ...


class Transfer:
    """A body or a stream on its way to one device."""

    __slots__ = ("sending", "source")

    def __init__(self, sending: Sending, source: Source) -> None:
        self.sending = sending
        self.source = source

    def place(self) -> tuple[int, int]:
        """Whose turn it is: by priority, and those of one priority take turns."""
        return -self.source.priority, self.sending.turn
