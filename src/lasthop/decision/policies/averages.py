"""Moving averages of values and of intervals, for policies that learn from the latest ones."""

from __future__ import annotations

from collections import deque

from lasthop.clock import Micros

READS = 16
"""The number of reads over which policies average: about a week of a user who looks twice a day.
That is enough to be steady and few enough to follow a new habit."""


class MovingAverage:
    """The mean of the latest values, at most `size` of them."""

    __slots__ = ("_last", "_sum")

    def __init__(self, size: int) -> None:
        self._last: deque[int] = deque(maxlen=size)
        self._sum = 0

    def __len__(self) -> int:
        return len(self._last)

    def add(self, value: int) -> None:
        """Add a value; the oldest value is dropped when there are too many."""
        if len(self._last) == self._last.maxlen:
            self._sum -= self._last[0]
        self._last.append(value)
        self._sum += value

    def mean(self) -> float | None:
        """Return the mean of the values, or None before the first one."""
        return self._sum / len(self._last) if self._last else None


class MovingInterval:
    """The mean time between the latest moments, over at most `size` intervals."""

    __slots__ = ("_moments",)

    def __init__(self, size: int) -> None:
        self._moments: deque[Micros] = deque(maxlen=size + 1)

    def add(self, moment: Micros) -> None:
        """Add a moment; a moment before the last one is treated as equal to the last one."""
        last = self._moments[-1] if self._moments else moment
        self._moments.append(max(moment, last))

    def mean(self) -> float | None:
        """Return the mean interval in microseconds, or None before the second moment."""
        moments = self._moments
        if len(moments) < 2:
            return None
        return (moments[-1] - moments[0]) / (len(moments) - 1)
