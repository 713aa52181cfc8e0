"""The unified prefetching algorithm of figure 7 of the last-hop paper, with the averages that it
leaves open.

The prefetch limit is twice what a read takes. The expiration threshold is the time between reads,
if events live far longer than that; if they do not, no threshold is good, and the one that the user
chose holds. On topics whose ranks fall, new events are held back until most falls have happened.
"""

from __future__ import annotations

from collections import deque

from lasthop.clock import DAY, Micros
from lasthop.decision.policies.averages import READS, MovingAverage, MovingInterval
from lasthop.decision.policies.policy import Policy, Tuning

START_LIMIT = 32
"""The prefetch limit of a subscription without Max, before the first read."""

FAR_ABOVE = 10
"""The mean lifetime of events must be this many times the interval between reads for the interval
to become the threshold: an order of magnitude (last-hop paper, section 3.3)."""

LIFETIMES = 256
FALLS = 64
ARRIVALS = 512
"""How many lifetimes, falls of rank and arrivals are remembered."""

MANY_FALLS = 0.02
"""The share of events whose rank falls above which it pays to wait for the falls."""

MOST_FALLS = 0.9
"""The share of past falls of rank that must lie within the time for which a new event is held
back."""


class Unified(Policy):
    """Learns how much to keep on the device, what expires too soon, and how long to hold events
    back."""

    unworthy = "expires before the threshold"

    def __init__(self, tuning: Tuning) -> None:
        super().__init__(tuning)
        self._wanted = MovingAverage(READS)
        self._between_reads = MovingInterval(READS)
        self._lifetimes = MovingAverage(LIFETIMES)
        self._falls: deque[tuple[int, Micros]] = deque(maxlen=FALLS)
        """Falls of rank: the number of arrivals until then, and the age of the event."""
        self._arrivals = 0
        start = 2 * tuning.max if tuning.max is not None else START_LIMIT
        self.prefetch_limit = start if tuning.prefetch_limit is None else tuning.prefetch_limit
        self.expiration_threshold = tuning.expiration_threshold or 0
        self.delay: Micros = 0

    def arrived(self, *, lifetime: Micros | None, now: Micros) -> Micros:
        self._arrivals += 1
        if self.delay and not self._many_falls():
            self.delay = 0
        if lifetime is None:
            return self.delay
        self._lifetimes.add(lifetime)
        return min(self.delay, lifetime // 2)

    def read(self, *, wanted: int, offline: bool, at: Micros) -> None:
        self._wanted.add(wanted)
        self._between_reads.add(at)
        # An average of zero must not stop prefetching for good.
        self.prefetch_limit = max(1, round(2 * (self._wanted.mean() or 0)))
        self.expiration_threshold = self._threshold()

    def _threshold(self) -> Micros:
        interval = self._between_reads.mean()
        lifetime = self._lifetimes.mean()
        if interval is not None:
            awake = interval * self.tuning.waking_hours / DAY
            if lifetime is not None and lifetime >= FAR_ABOVE * awake:
                return int(awake)
        return self.tuning.expiration_threshold or 0

    def rank_fell(self, *, age: Micros) -> None:
        self._falls.append((self._arrivals, age))
        ages = sorted(age for _, age in self._falls)
        self.delay = ages[int(MOST_FALLS * (len(ages) - 1))] if self._many_falls() else 0

    def _many_falls(self) -> bool:
        """Return whether a new event is likely to fall in rank, judging by the remembered falls."""
        falls = self._falls
        while falls and falls[0][0] < self._arrivals - ARRIVALS:
            falls.popleft()
        if len(falls) < 2:
            return False
        return len(falls) / max(1, self._arrivals - falls[0][0]) >= MANY_FALLS

    def room(self, *, on_device: int) -> int:
        return self.prefetch_limit - on_device

    def worth(self, *, lifetime: Micros | None, now: Micros) -> bool:
        return lifetime is None or lifetime >= self.expiration_threshold
