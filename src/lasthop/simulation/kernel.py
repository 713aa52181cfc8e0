"""Virtual time: a heap of (time, order, action). Nothing happens between two of its entries."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from lasthop.clock import Micros

START: Micros = 1_800_000_000_000_000
"""The time at which every rehearsal begins: 2027-01-15T08:00:00Z."""


class Kernel:
    """Runs actions in order of time, and actions of one moment in the order in which they were
    planned."""

    def __init__(self, start: Micros = START) -> None:
        self._now = start
        self._order = 0
        self._heap: list[tuple[Micros, int, Callable[[], None]]] = []

    def now(self) -> Micros:
        return self._now

    def at(self, time: Micros, action: Callable[[], None]) -> None:
        """Plan an action for `time`, or for now if that has passed."""
        self._order += 1
        heapq.heappush(self._heap, (max(time, self._now), self._order, action))

    def after(self, delay: Micros, action: Callable[[], None]) -> None:
        """Plan an action for when `delay` has passed."""
        self.at(self._now + delay, action)

    def run(self, *, until: Callable[[], bool], limit: Micros) -> bool:
        """Run actions until `until` returns True; return False if none is left or `limit` was
        reached."""
        end = self._now + limit
        while not until():
            if not self._heap or self._heap[0][0] > end:
                return False
            self._now, _, action = heapq.heappop(self._heap)
            action()
        return True
