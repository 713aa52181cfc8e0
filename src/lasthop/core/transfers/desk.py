"""What one session has under way in pieces. A device that sends and gets nothing large has none."""

from __future__ import annotations

from typing import Protocol

from lasthop.clock import Micros
from lasthop.message import Quality
from lasthop.wire.hop.frames import Ending, Piece
from lasthop.wire.hop.transfer import Receiving, Sending


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


class Outgoing:
    """One transfer to a device."""

    __slots__ = ("sending", "source")

    def __init__(self, sending: Sending, source: Source) -> None:
        self.sending = sending
        self.source = source

    def place(self) -> tuple[int, int]:
        """Whose turn it is: by priority, and those of one priority take turns."""
        return -self.source.priority, self.sending.turn


class Sink(Protocol):
    """Something that a device sends in pieces."""

    receiving: Receiving

    @property
    def stream(self) -> bool:
        """Whether it is a stream, or the body of a message."""
        ...

    @property
    def over(self) -> bool:
        """Nothing is kept of it: it is there to give its last word in this contact."""
        ...

    def piece(self, piece: Piece, now: Micros) -> None:
        """Bytes have come."""
        ...

    def ending(self, ending: Ending, now: Micros) -> None:
        """The device says how it ends."""
        ...

    def answer(self) -> Ending | None:
        """Our last word, once there is one: it is said again until the device stops asking."""
        ...


class Transfers:
    """What one session has under way."""

    __slots__ = (
        "alone",
        "armed",
        "claimed",
        "due",
        "incoming",
        "outgoing",
        "over",
        "said",
        "told",
        "turns",
    )

    def __init__(self) -> None:
        self.outgoing: dict[int, Outgoing] = {}
        self.incoming: dict[int, Sink] = {}
        """By the key that the device gave."""
        self.claimed: dict[int, None] = {}
        """Bodies of the device that are with their messages, in this contact."""
        self.said: set[int] = set()
        """Incoming transfers whose last word was said in this contact."""
        self.over: dict[int, Ending] = {}
        """Bodies of which there will be no more: what the device has not confirmed to have heard in
        this contact."""
        self.told: set[int] = set()
        """Those of them that were said, and not over a line that is gone."""
        self.turns = 0
        self.alone = False
        """Whether this contact has had one channel only: then no word is a late one."""
        self.due: Micros | None = None
        """On a channel that loses frames: when to ask again."""
        self.armed: Micros | None = None

    def forget_end(self, key: int) -> bool:
        """The device has heard that a body is over, or it begins anew. Whether it was over."""
        self.told.discard(key)
        return self.over.pop(key, None) is not None
