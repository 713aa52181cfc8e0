"""Grants: bytes of a transfer that may leave over one link. They are reserved in the budgets before
they leave, and paid for as far as they left."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.clock import Micros
from lasthop.decision.ledger import BudgetLedger, K
from lasthop.decision.links import Charge, Tariff

STREAM_GRANT = 64 << 10
"""The number of bytes of a stream that are granted at a time. Each grant is a commit, and after a
crash the whole grant counts as spent, so at most this many bytes are counted without having
left."""


class Grant:
    """Bytes of one transfer that may leave over one channel, as soon as the grant is durable."""

    __slots__ = ("channel", "durable", "left", "spent")

    def __init__(self, channel: int, size: int) -> None:
        self.channel = channel
        self.left = size
        self.spent = 0
        self.durable = False

    def leave(self, size: int) -> None:
        """Count bytes of the grant as handed to the channel."""
        self.left -= size
        self.spent += size

    def settle(
        self, ledger: BudgetLedger[K], transfer: K, tariff_of: Callable[[str], Tariff], now: Micros
    ) -> Charge | None:
        """End the grant: pay for the bytes that left and give back the rest. Return the charge, or
        None if nothing left."""
        reserved = ledger.reserved(transfer)
        assert reserved is not None
        if not self.spent:
            ledger.refund(transfer, now)
            return None
        charge = tariff_of(reserved.hold.link).charge(self.spent, whole=False)
        ledger.left_partly(transfer, charge, now)
        return charge
