"""Bytes of a transfer that may leave over one link: reserved before they leave, and paid for as far
as they left."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.clock import Micros
from lasthop.decision.ledger import K, Ledger
from lasthop.decision.links import Charge, Tariff

STREAM_GRANT = 64 << 10
"""Bytes of a stream that are granted at a time. Each grant is a commit, and after a crash what was
granted counts as spent: this many at most were not."""


class Grant:
    """Bytes of one transfer that may leave over one channel, once that is durable."""

    __slots__ = ("channel", "durable", "left", "spent")

    def __init__(self, channel: int, size: int) -> None:
        self.channel = channel
        self.left = size
        self.spent = 0
        self.durable = False

    def leave(self, size: int) -> None:
        """So many bytes are handed to the channel."""
        self.left -= size
        self.spent += size

    def settle(
        self, ledger: Ledger[K], transfer: K, tariff_of: Callable[[str], Tariff], now: Micros
    ) -> Charge | None:
        """No more of it will leave: what did is paid for. Returns what that was, if anything."""
        reserved = ledger.reserved(transfer)
        assert reserved is not None
        if not self.spent:
            ledger.refund(transfer, now)
            return None
        charge = tariff_of(reserved.hold.link).charge(self.spent, whole=False)
        ledger.left_partly(transfer, charge, now)
        return charge
