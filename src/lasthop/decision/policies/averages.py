"""Moving averages over the last few of something."""

from __future__ import annotations

from collections import deque

from lasthop.clock import Micros

READS = 16
"""About a week of a user who looks twice a day: old enough to be steady, young enough to follow."""


class MovingAverage:
    """The mean of the last values."""

    __slots__ = ("_last", "_sum")

    def __init__(self, size: int) -> None:
        self._last: deque[int] = deque(maxlen=size)
        self._sum = 0

    def __len__(self) -> int:
        return len(self._last)

    def add(self, value: int) -> None:
        """Take one more in; the oldest makes room for it."""
        if len(self._last) == self._last.maxlen:
            self._sum -= self._last[0]
        self._last.append(value)
        self._sum += value

    def mean(self) -> float | None:
        """Nothing before the first value."""
        return self._sum / len(self._last) if self._last else None


class MovingInterval:
    """The mean time between the last moments."""

    __slots__ = ("_moments",)

    def __init__(self, size: int) -> None:
        self._moments: deque[Micros] = deque(maxlen=size + 1)

    def add(self, moment: Micros) -> None:
        """It happened again; a moment before the last one counts as the last one."""
        last = self._moments[-1] if self._moments else moment
        self._moments.append(max(moment, last))

    def mean(self) -> float | None:
        """Nothing before the second moment."""
        moments = self._moments
        if len(moments) < 2:
            return None
        return (moments[-1] - moments[0]) / (len(moments) - 1)
