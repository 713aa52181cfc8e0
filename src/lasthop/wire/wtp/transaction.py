"""What both sides of a transaction share: their events for the user, and their timers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

from lasthop.clock import SECOND, Micros
from lasthop.wire.wtp.message import MAX_MESSAGE, SEGMENT
from lasthop.wire.wtp.pdus import Pdu

Peer: TypeAlias = Hashable
"""The identity of the other end: an address, or a name in a rehearsal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WtpPatience:
    """How long each side waits. The defaults are for packet data; short messages need far more."""

    retry: Micros = 3 * SECOND
    """The time before the same PDU is sent again."""
    retries: int = 8
    result: Micros = 60 * SECOND
    """How long to wait for a result after the request was acknowledged."""
    memory: Micros = 60 * SECOND
    """How long a transaction is remembered after its end. It must exceed all retries of the other
    side, or the last of them would be taken for a new transaction."""
    segment: int = SEGMENT
    message: int = MAX_MESSAGE

    def __post_init__(self) -> None:
        if self.memory <= self.retry * (self.retries + 1):
            raise ValueError("transactions must be remembered for longer than they are retried")


class Side:
    """One side of one transaction, with the PDUs to send and the time of its next timeout."""

    __slots__ = ("armed", "due", "out", "patience", "peer", "tid", "tries")

    def __init__(self, peer: Peer, tid: int, patience: WtpPatience) -> None:
        self.peer = peer
        self.tid = tid
        """The transaction's number, without the bit that says which side sent a PDU."""
        self.patience = patience
        self.due: Micros | None = None
        self.armed: Micros | None = None
        """The time for which this side is registered with its endpoint's timers; never later than
        its next timeout."""
        self.tries = 0
        self.out: list[Pdu] = []

    def again(self, now: Micros) -> bool:
        """Count one more repetition and restart the timer; return False if there were too many."""
        self.tries += 1
        self.due = now + self.patience.retry
        return self.tries <= self.patience.retries

    def progress(self, now: Micros) -> None:
        """Restart the timer and the count of repetitions, because the other side has answered."""
        self.tries = 0
        self.due = now + self.patience.retry


@dataclass(frozen=True, slots=True)
class Invoked:
    """A peer's request has arrived, reported once. The user then calls `acknowledge`, `answer` or
    `abort`."""

    side: Side
    data: bytes
    tcl: int


@dataclass(frozen=True, slots=True)
class RequestConfirmed:
    """Our request of class 1 was acknowledged."""

    side: Side


@dataclass(frozen=True, slots=True)
class TransactionAnswered:
    """Our request of class 2 has its result."""

    side: Side
    data: bytes


@dataclass(frozen=True, slots=True)
class Delivered:
    """Our result was acknowledged by the initiator."""

    side: Side


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """A transaction was aborted: by the other user, the other protocol or our own."""

    side: Side
    reason: int
    by_user: bool = False


Event: TypeAlias = Invoked | RequestConfirmed | TransactionAnswered | Delivered | TransactionEnded
