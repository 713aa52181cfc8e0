"""A heap of items with due times. The core says when it next has to be woken; the driver wakes
it."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

from lasthop.clock import Micros

T = TypeVar("T")


class Timers(Generic[T]):
    """Items by due time, first in first out within a microsecond.

    An item is never removed early: the code that takes it out checks whether it still matters. That
    makes cancelling free, at the price of keeping a dead entry until its time comes.
    """

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[Micros, int, T]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, due: Micros, item: T) -> None:
        """Let `due` return `item` from the time `due` on."""
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, item))

    def next_due(self) -> Micros | None:
        """Return when the earliest item is due; None if there is no item."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: Micros) -> list[T]:
        """Remove and return all items that are due by `now`, in order of their due times."""
        items: list[T] = []
        while self._heap and self._heap[0][0] <= now:
            items.append(heapq.heappop(self._heap)[2])
        return items
