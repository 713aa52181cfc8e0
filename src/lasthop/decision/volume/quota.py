"""Room for a limited number of events: which one is evicted when there is one too many.

An event that is outranked by enough others which last at least as long cannot be wanted before they
are gone: a read takes Max of them. The lowest-ranked such event is evicted. If no event is
outranked like that (a low rank that outlives everything else is still the best of tomorrow), the
lowest rank is evicted all the same, because the limit must hold; every event that stays is better
than it in rank or in lifetime.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from lasthop.clock import Micros
from lasthop.decision.volume.entry import FeedEntry
from lasthop.decision.volume.ranking import SWEEP

SEARCH = 64
"""How many of the lowest-ranked events are searched for one to evict: a publisher who always ranks
higher what expires sooner must not make every arrival a search through all events."""


class Row(NamedTuple):
    """An event as it was counted. Rows sort in the order of eviction."""

    rank: float
    expires_at: Micros
    youth: int
    serial: int
    entry: FeedEntry


class Quota:
    """Counts the events of one place, and names the one to evict."""

    def __init__(self, limit: int, *, enough: int | None, threshold: float) -> None:
        self.limit = limit
        self._enough = enough
        """How many events a read takes; `None`: all, so that no event is outranked by enough
        others."""
        self._threshold = threshold
        self._serial = 0
        self._members: dict[int, Row] = {}
        self._worst: list[Row] = []
        """A heap with the lowest rank first; a row that is no longer its member's present row is
        skipped."""
        self._expiries: list[Micros] = []
        """Expirations of the members, sorted. An update moves at most `limit` pointers, in one copy
        of memory."""

    def add(self, entry: FeedEntry) -> None:
        """Count the event with its present rank."""
        self._serial += 1
        row = Row(entry.rank, entry.expires_at, -entry.order, self._serial, entry)
        self._members[entry.key] = row
        if len(self._worst) > 2 * len(self._members) + SWEEP:
            self._worst = list(self._members.values())
            heapify(self._worst)
        else:
            heappush(self._worst, row)
        insort(self._expiries, entry.expires_at)

    def discard(self, entry: FeedEntry) -> None:
        """Stop counting the event, if it was counted."""
        if self._members.pop(entry.key, None) is not None:
            del self._expiries[bisect_left(self._expiries, entry.expires_at)]

    def victim(self) -> FeedEntry | None:
        """Return the event to evict; None while there is room."""
        if len(self._members) <= self.limit:
            return None
        spared: list[Row] = []
        chosen = None
        while self._worst and len(spared) < SEARCH:
            row = heappop(self._worst)
            if self._members.get(row.entry.key) is not row:
                continue
            spared.append(row)
            if self._outranked(row, spared):
                chosen = row.entry
                break
            if self._enough is None:
                break
        for row in spared:
            heappush(self._worst, row)
        return chosen or spared[0].entry

    def _outranked(self, row: Row, no_better: list[Row]) -> bool:
        if row.rank < self._threshold:
            return True
        if self._enough is None:
            return False
        as_long = len(self._expiries) - bisect_left(self._expiries, row.expires_at)
        return (
            as_long - sum(other.expires_at >= row.expires_at for other in no_better) >= self._enough
        )
