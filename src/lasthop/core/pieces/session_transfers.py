"""What one session has under way in pieces. A device that sends and gets nothing large has none."""

from __future__ import annotations

from typing import Protocol

from lasthop.clock import Micros
from lasthop.core.feature import SessionPart
from lasthop.core.session import Session
from lasthop.core.transfer import Transfer
from lasthop.wire.hop.frames import Ending, Piece
from lasthop.wire.hop.transfer import Receiving


class PieceSink(Protocol):
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


class Pump(Protocol):
    """Lets pieces leave."""

    def pump(self, session: Session, transfers: SessionTransfers, now: Micros) -> None:
        """Say what is to be said to a device, and let the next pieces leave."""
        ...


class SessionTransfers(SessionPart):
    """What one session has under way."""

    __slots__ = (
        "_pump",
        "_session",
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

    def __init__(self, session: Session, pump: Pump) -> None:
        self._session = session
        self._pump = pump
        self.outgoing: dict[int, Transfer] = {}
        self.incoming: dict[int, PieceSink] = {}
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

    def after_sending(self, now: Micros) -> None:
        self._pump.pump(self._session, self, now)

    def forget_end(self, key: int) -> bool:
        """The device has heard that a body is over, or it begins anew. Whether it was over."""
        self.told.discard(key)
        return self.over.pop(key, None) is not None
