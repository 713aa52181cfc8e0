"""What both sides of a transaction share: what they tell their user, and their patience."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

from lasthop.clock import SECOND, Micros
from lasthop.wire.wtp.message import MAX_MESSAGE, SEGMENT
from lasthop.wire.wtp.pdus import Pdu

Peer: TypeAlias = Hashable
"""Whoever is at the other end: an address, or a name in a rehearsal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WtpPatience:
    """How long each side waits. The numbers are for packet data; short messages need far more."""

    retry: Micros = 3 * SECOND
    """Before the same is sent again."""
    retries: int = 8
    result: Micros = 60 * SECOND
    """For a result that was promised by an acknowledgement."""
    memory: Micros = 60 * SECOND
    """For how long a transaction is remembered after its end. It must exceed all retries of the
    other side, or the last of them would be taken for a new transaction."""
    segment: int = SEGMENT
    message: int = MAX_MESSAGE

    def __post_init__(self) -> None:
        if self.memory <= self.retry * (self.retries + 1):
            raise ValueError("transactions must be remembered for longer than they are retried")


class Side:
    """One side of one transaction. It says what is to be sent, and when it wants waking."""

    __slots__ = ("armed", "due", "out", "patience", "peer", "tid", "tries")

    def __init__(self, peer: Peer, tid: int, patience: WtpPatience) -> None:
        self.peer = peer
        self.tid = tid
        """Without the bit that says whose PDU it is in."""
        self.patience = patience
        self.due: Micros | None = None
        self.armed: Micros | None = None
        """For when it stands among its endpoint's timers: never later than it is due."""
        self.tries = 0
        self.out: list[Pdu] = []

    def again(self, now: Micros) -> bool:
        """Whether one more repetition is left; if so the time to the next one runs."""
        self.tries += 1
        self.due = now + self.patience.retry
        return self.tries <= self.patience.retries

    def progress(self, now: Micros) -> None:
        """The other side is there: repetitions are counted anew."""
        self.tries = 0
        self.due = now + self.patience.retry


@dataclass(frozen=True, slots=True)
class Invoked:
    """A peer's request is here, once. Its side takes `acknowledge`, `answer` or `abort`."""

    side: Side
    data: bytes
    tcl: int


@dataclass(frozen=True, slots=True)
class RequestConfirmed:
    """Our request of class 1 was acknowledged."""

    side: Side


@dataclass(frozen=True, slots=True)
class TransactionAnswered:
    """Our request of class 2 has its result; or our result has arrived."""

    side: Side
    data: bytes


@dataclass(frozen=True, slots=True)
class Delivered:
    """Our result was acknowledged."""

    side: Side


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """A transaction was given up: by the other user, the other protocol or our own."""

    side: Side
    reason: int
    by_user: bool = False


Event: TypeAlias = Invoked | RequestConfirmed | TransactionAnswered | Delivered | TransactionEnded
