"""Sets of numbers as a few ascending ranges: what arrived beyond a gap, what was acknowledged
there.

A set takes space for its gaps, not for its numbers, and adding a range costs in proportion to what
is new in it, so that a peer cannot make us walk over the same numbers again and again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from lasthop.wire.hop.frames import Ranges


class RangeSet:
    """A set of numbers, kept as half-open ranges with gaps between them."""

    __slots__ = ("_starts", "_stops")

    def __init__(self, ranges: Ranges = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        for start, stop in ranges:
            self.add(start, stop)

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._starts, number) - 1
        return index >= 0 and number < self._stops[index]

    @property
    def stop(self) -> int:
        """One more than the largest number in the set; 0 when it is empty."""
        return self._stops[-1] if self._stops else 0

    def ranges(self, most: int | None = None) -> Ranges:
        """Return the ranges, lowest first, at most `most` of them."""
        return tuple(zip(self._starts[:most], self._stops[:most], strict=True))

    def lowest_and_last(self, most: int) -> Ranges:
        """Return at most `most` ranges, lowest first: those that are left out lie before the last
        one, so that the largest number is always named."""
        if len(self._starts) <= most:
            return self.ranges()
        return (*self.ranges(most - 1), (self._starts[-1], self._stops[-1]))

    def gaps(self, start: int) -> Ranges:
        """Return the ranges missing between `start` and the largest number."""
        edges = [start, *self._stops]
        gaps = zip(edges, self._starts, strict=False)
        return tuple((low, high) for low, high in gaps if low < high)

    def add(self, start: int, stop: int) -> Ranges:
        """Add the numbers from `start` to below `stop`; return the ranges that are new."""
        starts, stops = self._starts, self._stops
        # Every range that overlaps or touches the new one is merged with it.
        low = bisect_left(stops, start)
        high = bisect_right(starts, stop)
        new = []
        at = start
        for index in range(low, high):
            if at < starts[index]:
                new.append((at, starts[index]))
            at = max(at, stops[index])
        if at < stop:
            new.append((at, stop))
        if low < high:
            start = min(start, starts[low])
            stop = max(stop, stops[high - 1])
        starts[low:high] = [start]
        stops[low:high] = [stop]
        return tuple(new)

    def drop_below(self, number: int) -> None:
        """Remove the numbers below `number` from the set."""
        index = bisect_right(self._stops, number)
        del self._starts[:index]
        del self._stops[:index]
        if self._starts and self._starts[0] < number:
            self._starts[0] = number

    def take_from(self, number: int) -> int:
        """Remove `number` and what follows it without a gap, and everything below; return the first
        number that is missing from `number` on."""
        self.drop_below(number)
        if self._starts and self._starts[0] == number:
            del self._starts[0]
            return self._stops.pop(0)
        return number
