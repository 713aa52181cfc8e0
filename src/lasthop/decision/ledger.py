"""The ledger of a sender with several links: reservations, attempts and measurements.

Both sides of the hop keep a ledger: the gateway for its deliveries to a device, the device for its
own messages. Each side chooses the key of a message. A release reserves the price of a message, and
the price is paid when the message is handed to its link.
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
"""The largest number of attempts that are remembered for one message: enough to know which links
have failed."""

K = TypeVar("K", bound=Hashable)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(BudgetState).decode


class Reserved(NamedTuple):
    """A reservation in the budgets for a message that is to leave over this channel."""

    hold: BudgetHold
    channel: int
    receipt_by: Micros


class Departed(NamedTuple):
    """A message that left and is not acknowledged yet: its channel, the channel's gauge and the
    stamp."""

    channel: int
    gauge: Gauge
    stamp: Stamp
    size: int


class BudgetLedger(Generic[K]):
    """The budgets of one sender, and the messages that have reserved or spent something in them."""

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets
        self.changed = False
        """Whether the budgets have changed since they were last written to the store."""
        self._reserved: dict[K, Reserved] = {}
        self._attempts: dict[K, tuple[Attempt, ...]] = {}
        self._departed: dict[K, Departed] = {}

    def change(self, limits: Sequence[Limit], *, zone_name: str) -> None:
        """Replace the limits, and perhaps their time zone; amounts that were used stay used."""
        state = self.budgets.snapshot()
        if state.zone != zone_name:
            state.zone = zone_name
            self.budgets = Budgets.restore(state, shared=self.budgets.shared)
        self.budgets.change(limits)
        self.changed = True

    def attempts(self, message: K) -> tuple[Attempt, ...]:
        """Return the earlier attempts to send a message, oldest first."""
        return self._attempts.get(message, ())

    def reserved(self, message: K) -> Reserved | None:
        """Return the reservation of a message, or None if it has none."""
        return self._reserved.get(message)

    def reserve(self, message: K, choice: Choice, *, queue: str, now: Micros) -> None:
        """Reserve the charge of a message in the budgets until the message leaves or is
        refunded."""
        assert choice.charge is not None
        assert choice.link is not None
        assert choice.receipt_by is not None
        hold = self.budgets.reserve(choice.charge, queue=queue, link=choice.link, now=now)
        assert isinstance(hold, BudgetHold), "the choice has looked at every limit"
        self._reserved[message] = Reserved(hold, choice.channel, choice.receipt_by)
        self.changed = True

    def left(self, message: K, now: Micros, *, gauge: Gauge | None) -> BudgetHold:
        """Spend the reservation of a message that was handed to its channel. If that happened for
        the first time, the channel's gauge learns from the ack."""
        hold, channel, receipt_by = self._reserved.pop(message)
        self.budgets.commit(hold.number, now=now)
        # What leaves once more is not measured: its ack may be for either transmission, and a link
        # over which much is repeated at once would look contended.
        if message in self._attempts:
            self._departed.pop(message, None)
        elif gauge is not None:
            stamp = gauge.left(hold.charge.bytes, now)
            self._departed[message] = Departed(channel, gauge, stamp, hold.charge.bytes)
        attempt = Attempt(hold.link, channel, now, receipt_by)
        self._attempts[message] = (*self.attempts(message)[1 - MOST_ATTEMPTS :], attempt)
        self.changed = True
        return hold

    def settle(self, message: K, spent: Charge | None, now: Micros) -> Charge | None:
        """Spend this charge in place of what was reserved for a message, or all that was reserved
        if None; return the charge, or None if nothing was reserved."""
        reserved = self._reserved.pop(message, None)
        if reserved is None:
            return None
        hold = reserved.hold
        self.changed = True
        if spent is None or spent == hold.charge:
            self.budgets.commit(hold.number, now=now)
            return hold.charge
        self.budgets.refund(hold.number, now=now)
        self.budgets.spend(spent, queue=hold.queue, link=hold.link, now=now)
        return spent

    def left_partly(self, message: K, spent: Charge, now: Micros) -> None:
        """Spend only the charge of the part of a message that left: the rest will never leave."""
        reserved = self._reserved.pop(message, None)
        if reserved is None:
            return
        hold = reserved.hold
        self.budgets.refund(hold.number, now=now)
        self.budgets.spend(spent, queue=hold.queue, link=hold.link, now=now)
        self.changed = True

    def refund(self, message: K, now: Micros) -> bool:
        """Give back the reservation of a message that did not leave; return False if it had
        none."""
        reserved = self._reserved.pop(message, None)
        if reserved is None:
            return False
        self.budgets.refund(reserved.hold.number, now=now)
        self.changed = True
        return True

    def acknowledged(self, message: K, now: Micros) -> int | None:
        """Note an ack. Return the channel that carried the message, if its gauge learned from the
        ack."""
        departed = self._departed.pop(message, None)
        if departed is None:
            return None
        departed.gauge.arrived(departed.stamp, departed.size, now)
        return departed.channel

    def ended(self, message: K, now: Micros) -> bool:
        """Forget a message that has its outcome; return whether a reservation was given back."""
        refunded = self.refund(message, now)
        self._attempts.pop(message, None)
        self._departed.pop(message, None)
        return refunded


def encode_budgets(budgets: Budgets) -> bytes:
    """Encode the budgets for the store."""
    return _encode(budgets.snapshot())


def restored_budgets(state: bytes, now: Micros, *, shared: Budgets | None = None) -> Budgets:
    """Decode stored budgets after a restart. What was reserved may have left, so it counts as
    spent."""
    budgets = Budgets.restore(_decode(state), shared=shared)
    for hold in budgets.outstanding():
        budgets.commit(hold.number, now=now)
    return budgets
