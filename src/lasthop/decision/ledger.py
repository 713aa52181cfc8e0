"""The books of whoever sends over several links: what is reserved, what was tried and learned.

Both sides of the hop keep them, the gateway of its deliveries to a device and the device of its own
messages, each under whatever it knows them by. A release reserves its price; the price is paid when
the message is handed to its link.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from lasthop.clock import Micros
from lasthop.decision.budgets import BudgetHold, Budgets, BudgetState, Limit
from lasthop.decision.choice import Attempt, Choice
from lasthop.decision.contention import Gauge, Stamp
from lasthop.decision.links import Charge

MOST_ATTEMPTS = 8
"""Attempts that are remembered of one message: enough to know which links have failed."""

K = TypeVar("K", bound=Hashable)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(BudgetState).decode


class Reserved(NamedTuple):
    """A place in the budgets, for a message that is to leave over this channel."""

    hold: BudgetHold
    channel: int
    receipt_by: Micros


class Departed(NamedTuple):
    """Of a message that nobody has acknowledged: by what it was measured, and how it left."""

    channel: int
    gauge: Gauge
    stamp: Stamp
    size: int


class Ledger(Generic[K]):
    """One sender's budgets, and its messages on their way through them."""

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets
        self.changed = False
        """The budgets are to be written."""
        self._reserved: dict[K, Reserved] = {}
        self._attempts: dict[K, tuple[Attempt, ...]] = {}
        self._departed: dict[K, Departed] = {}

    def change(self, limits: Sequence[Limit], *, zone_name: str) -> None:
        """Other limits hold from now on, in another zone perhaps; what was used stays used."""
        state = self.budgets.snapshot()
        if state.zone != zone_name:
            state.zone = zone_name
            self.budgets = Budgets.restore(state, shared=self.budgets.shared)
        self.budgets.change(limits)
        self.changed = True

    def attempts(self, message: K) -> tuple[Attempt, ...]:
        """Where a message was sent before."""
        return self._attempts.get(message, ())

    def reserved(self, message: K) -> Reserved | None:
        """The place that is kept for a message."""
        return self._reserved.get(message)

    def reserve(self, message: K, choice: Choice, *, queue: str, now: Micros) -> None:
        """Take what a message will cost out of the budgets, until it has left or not."""
        assert choice.charge is not None
        assert choice.link is not None
        assert choice.receipt_by is not None
        hold = self.budgets.reserve(choice.charge, queue=queue, link=choice.link, now=now)
        assert isinstance(hold, BudgetHold), "the choice has looked at every limit"
        self._reserved[message] = Reserved(hold, choice.channel, choice.receipt_by)
        self.changed = True

    def left(self, message: K, now: Micros, *, gauge: Gauge | None) -> BudgetHold:
        """It was handed to its channel: what was reserved is spent. The channel's gauge, if it is
        still there, will learn from the acknowledgement."""
        hold, channel, receipt_by = self._reserved.pop(message)
        self.budgets.commit(hold.number, now=now)
        if gauge is not None:
            stamp = gauge.left(hold.charge.bytes, now)
            self._departed[message] = Departed(channel, gauge, stamp, hold.charge.bytes)
        attempt = Attempt(hold.link, channel, now, receipt_by)
        self._attempts[message] = (*self.attempts(message)[1 - MOST_ATTEMPTS :], attempt)
        self.changed = True
        return hold

    def left_partly(self, message: K, spent: Charge, now: Micros) -> None:
        """Only some of it left, and the rest never will: that is all that was spent."""
        reserved = self._reserved.pop(message, None)
        if reserved is None:
            return
        hold = reserved.hold
        self.budgets.refund(hold.number, now=now)
        self.budgets.spend(spent, queue=hold.queue, link=hold.link, now=now)
        self.changed = True

    def refund(self, message: K, now: Micros) -> bool:
        """It did not leave; false if nothing was reserved for it."""
        reserved = self._reserved.pop(message, None)
        if reserved is None:
            return False
        self.budgets.refund(reserved.hold.number, now=now)
        self.changed = True
        return True

    def acknowledged(self, message: K, now: Micros) -> int | None:
        """The other side has it. Returns the channel that carried it, if something was learned."""
        departed = self._departed.pop(message, None)
        if departed is None:
            return None
        departed.gauge.arrived(departed.stamp, departed.size, now)
        return departed.channel

    def ended(self, message: K, now: Micros) -> bool:
        """It has come to its end; says whether something was given back."""
        refunded = self.refund(message, now)
        self._attempts.pop(message, None)
        self._departed.pop(message, None)
        return refunded


def encode_budgets(budgets: Budgets) -> bytes:
    """Budgets as a store keeps them."""
    return _encode(budgets.snapshot())


def restored_budgets(state: bytes, now: Micros, *, shared: Budgets | None = None) -> Budgets:
    """Budgets of an earlier life. What was reserved then may have left, so it counts as spent."""
    budgets = Budgets.restore(_decode(state), shared=shared)
    for hold in budgets.outstanding():
        budgets.commit(hold.number, now=now)
    return budgets
