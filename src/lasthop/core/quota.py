"""The quota of each caller: token buckets, with time as an argument.

A caller has one bucket for every resource (messages, bytes); a request takes its amounts from all
buckets, or from none. All arithmetic is in whole numbers, so that a caller that waits for the time
that it was told then succeeds.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from lasthop.clock import SECOND, Micros

MAX_HOLDERS = 10_000
"""The largest number of callers that have buckets at a time, at some 300 bytes each. When more are
needed, full buckets are dropped first: a new bucket is full as well."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate limit: an average number per second, and the largest number at once."""

    per_second: int
    burst: int

    def __post_init__(self) -> None:
        if self.per_second < 1 or self.burst < 1:
            raise ValueError("a rate and its burst must be at least 1")


class _Buckets:
    """The remaining amounts of one holder, in millionths, as of the time `at`."""

    __slots__ = ("at", "levels")

    def __init__(self, at: Micros, levels: list[int]) -> None:
        self.at = at
        self.levels = levels


class CallerQuota:
    """The token buckets of all callers, with the same rates for each."""

    def __init__(self, *rates: Rate, max_holders: int = MAX_HOLDERS) -> None:
        self._rates = rates
        self._full = [rate.burst * SECOND for rate in rates]
        self._max_holders = max_holders
        self._holders: dict[Hashable, _Buckets] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def take(self, holder: Hashable, now: Micros, *amounts: int) -> Micros:
        """Take an amount of each resource from the caller's buckets and return 0, or take nothing
        and return the microseconds to wait before asking again.

        A request for more than a full bucket holds is allowed when the bucket is full, and leaves a
        debt: otherwise such a request could never succeed.
        """
        levels = self._refill(holder, now).levels
        wanted = [amount * SECOND for amount in amounts]
        left = [level - want for level, want in zip(levels, wanted, strict=True)]
        if min(left) >= 0:
            levels[:] = left
            return 0
        wait = 0
        for rate, full, level, want in zip(self._rates, self._full, levels, wanted, strict=True):
            missing = min(want, full) - level
            if missing > 0:
                wait = max(wait, -(-missing // rate.per_second))
        if not wait:
            levels[:] = left
        return wait

    def _refill(self, holder: Hashable, now: Micros) -> _Buckets:
        buckets = self._holders.get(holder)
        if buckets is None:
            if len(self._holders) >= self._max_holders:
                self._forget(now)
            buckets = self._holders[holder] = _Buckets(now, self._full.copy())
        elif now > buckets.at:
            self._fill(buckets, now)
        return buckets

    def _fill(self, buckets: _Buckets, now: Micros) -> None:
        elapsed = now - buckets.at
        buckets.at = now
        for i, rate in enumerate(self._rates):
            level = buckets.levels[i] + elapsed * rate.per_second
            buckets.levels[i] = min(level, self._full[i])

    def _forget(self, now: Micros) -> None:
        """Drop the buckets that are full and, if too few are, the oldest ones: their holders start
        again with full buckets."""
        for holder, buckets in list(self._holders.items()):
            self._fill(buckets, max(now, buckets.at))
            if buckets.levels == self._full:
                del self._holders[holder]
        for holder in list(self._holders)[: len(self._holders) - self._max_holders * 3 // 4]:
            del self._holders[holder]
