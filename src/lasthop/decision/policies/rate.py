"""A policy that forwards at the rate of reading: if one of five arriving events is read, one in
five goes.

It is not every fifth event that goes, but the best of those that wait.
"""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.decision.policies.averages import READS, MovingAverage, MovingInterval
from lasthop.decision.policies.policy import Policy, Tuning

ARRIVALS = 256
"""The number of events over which the arrival rate is measured."""


class RatePolicy(Policy):
    """Earns a fraction of a transfer with every arrival, and spends a whole one on every
    transfer."""

    def __init__(self, tuning: Tuning) -> None:
        super().__init__(tuning)
        self._between_arrivals = MovingInterval(ARRIVALS)
        self._between_reads = MovingInterval(READS)
        self._wanted = MovingAverage(READS)
        self._earned = 0.0

    def ratio(self) -> float:
        """Return how many events are read for every event that arrives; 1.0 until both rates are
        known."""
        arrival = self._between_arrivals.mean()
        reads = self._between_reads.mean()
        wanted = self._wanted.mean()
        if not arrival or not reads or wanted is None:
            return 1.0
        return min(1.0, wanted * arrival / reads)

    def arrived(self, *, lifetime: Micros | None, now: Micros) -> Micros:
        self._between_arrivals.add(now)
        self._earned += self.ratio()
        return 0

    def read(self, *, wanted: int, offline: bool, at: Micros) -> None:
        self._between_reads.add(at)
        self._wanted.add(wanted)

    def forwarded(self) -> None:
        self._earned -= 1.0

    def room(self, *, on_device: int) -> int:
        return int(self._earned)
