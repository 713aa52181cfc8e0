"""How long a device lets a connection stay idle: found by itself, or told by the fleet."""

from __future__ import annotations

from lasthop.clock import MINUTE, SECOND, Micros

SAFE: Micros = 2 * MINUTE
"""What every network is said to allow."""

LONGEST: Micros = 60 * MINUTE
TRUSTED = 3
"""Answers in a row after which a longer interval is tried."""


class Prober:
    """One device on one network: probes upwards from what is safe, by half as much again, then by
    halving what is left between the longest that worked and the shortest that did not."""

    __slots__ = ("_answers", "_bad", "_fixed", "interval")

    def __init__(self, told: Micros | None = None) -> None:
        self.interval: Micros = SAFE if told is None else told
        self._bad: Micros | None = None
        self._answers = 0
        self._fixed = told is not None
        """What the fleet knows is not tried out again by each device."""

    def answered(self) -> None:
        """The connection was still there."""
        self._answers += 1
        if self._fixed or self._answers < TRUSTED:
            return
        longer = min(LONGEST, self.interval * 3 // 2)
        if self._bad is not None:
            longer = min(longer, (self.interval + self._bad) // 2)
            if self._bad - self.interval < self.interval // 10:
                return
        self._answers = 0
        self.interval = longer

    def missed(self) -> None:
        """It was not: back to two thirds, and no further than this ever again."""
        self._bad = self.interval
        self._answers = 0
        self.interval = max(30 * SECOND, self.interval * 2 // 3)
