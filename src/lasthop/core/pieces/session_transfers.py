"""The transfers of one session. A device that sends and receives nothing large has none."""

from __future__ import annotations

from typing import Protocol

from lasthop.clock import Micros
from lasthop.core.feature import SessionPart
from lasthop.core.session import Session
from lasthop.core.transfer import Transfer
from lasthop.wire.hop.frames import Ending, Piece
from lasthop.wire.hop.transfer import Receiving


class PieceSink(Protocol):
    """A body or a stream that a device sends in pieces."""

    receiving: Receiving

    @property
    def stream(self) -> bool:
        """Whether the device sends a stream; otherwise the body of a message."""
        ...

    @property
    def over(self) -> bool:
        """Whether nothing is kept of the transfer: it exists only to repeat its ENDING in this
        contact."""
        ...

    def piece(self, piece: Piece, now: Micros) -> None:
        """Handle a piece that the device sent."""
        ...

    def ending(self, ending: Ending, now: Micros) -> None:
        """Handle the ENDING frame that the device sent for the transfer."""
        ...

    def answer(self) -> Ending | None:
        """Return the gateway's ENDING, once there is one; it is repeated until the device stops
        asking."""
        ...


class Pump(Protocol):
    """Sends the pieces of a session's transfers."""

    def pump(self, session: Session, transfers: SessionTransfers, now: Micros) -> None:
        """Send a device the reports about its transfers that are due, and let the next pieces
        leave."""
        ...


class SessionTransfers(SessionPart):
    """The bodies and streams of one session that travel in pieces."""

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
        """The incoming transfers, by the key that the device gave."""
        self.claimed: dict[int, None] = {}
        """Bodies from the device that were joined with their messages in this contact."""
        self.said: set[int] = set()
        """Incoming transfers for which the gateway has sent an ENDING frame in this contact."""
        self.over: dict[int, Ending] = {}
        """The ENDING frames of bodies that will not be continued, each kept until the device
        confirms it in this contact."""
        self.told: set[int] = set()
        """The keys in `over` whose ENDING was sent, over a channel that is still open."""
        self.turns = 0
        self.alone = False
        """Whether the device has had only one channel in this contact, so that no frame can
        overtake another."""
        self.due: Micros | None = None
        """When to ask again on a channel that loses frames; None if there is nothing to ask."""
        self.armed: Micros | None = None

    def after_sending(self, now: Micros) -> None:
        self._pump.pump(self._session, self, now)

    def forget_end(self, key: int) -> bool:
        """Forget the ENDING of a body, because the device has confirmed it or the body is sent
        again; return whether there was one."""
        self.told.discard(key)
        return self.over.pop(key, None) is not None
