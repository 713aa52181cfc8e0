"""Rankings of many events, without a search and without sorting events that are never asked for.

A read takes a few of the best, and most other events are never read. So only the first events are
kept in order, in a short list; the rest lie on an unsorted pile. When the list is used up it is
refilled from the pile; if many are taken, the pile becomes a heap. Events are never removed from
the middle: an event that has left the ranking is skipped when it comes up, and such events are
swept out when they are the majority.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heapify, heappop, heappush
from math import inf
from operator import attrgetter
from types import FunctionType
from typing import Final, Generic, TypeVar

from lasthop.clock import Micros
from lasthop.decision.volume.entry import NEVER, Ranked

SHORT: Final = 128
"""How many events are kept in order (up to twice as many): the reads of some days, and a list in
which an insertion costs next to nothing."""

FEW: Final = 16
"""The largest number of new events that are sorted by insertion: mostly those that arrived during
an outage."""

LOOKS: Final = 16
"""How often an event of the pile is looked at on average before the pile becomes a heap. Going
through the pile a few times takes less time than building a heap."""

SWEEP: Final = 64
"""The size up to which a collection is not worth sweeping."""

E = TypeVar("E", bound=Ranked)

ORDER, RANK = attrgetter("order"), attrgetter("rank")


def by_expiration(entry: Ranked) -> float:
    """Return a number that is higher for an event that expires sooner."""
    return float(-entry.expires_at)


def position(entries: list[E], number: float, by_rank: bool) -> int:
    """Return what `bisect_left` returns; in the compiled build this function is the faster one."""
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) >> 1
        entry = entries[middle]
        there = entry.rank if by_rank else float(-entry.expires_at)
        if there < number:
            low = middle + 1
        else:
            high = middle
    return low


COMPILED: Final = not isinstance(position, FunctionType)


class SortedEvents(Generic[E]):
    """Events sorted by a number, the highest first; among equals the one with the lower order."""

    __slots__ = (
        "_by_rank",
        "_first",
        "_floor",
        "_floor_order",
        "_heap",
        "_laid",
        "_pile",
    )

    def __init__(self, *, by_rank: bool) -> None:
        self._by_rank = by_rank
        """Whether the number is the rank; otherwise it is the expiration, the sooner the higher."""
        self._first: list[E] = []
        """The first events, sorted; the very first is at the end of the list."""
        self._floor = -inf
        self._floor_order: int = NEVER
        """Number and order of the first event that is not in `_first`: this event and all after
        it are on the pile or the heap."""
        self._pile: list[E] = []
        self._laid = 0
        """How many events have been put on the pile since it was last gone through."""
        self._heap: list[tuple[float, int, E]] = []
        """The number (negative, so that the highest sorts first), the order and the event."""

    def _put(self, entries: list[E], home: int) -> int:
        """Put events where they belong, and return how many. If `home` is not 0, only those of this
        home."""
        by_rank = self._by_rank
        count = 0
        for entry in entries:
            if home and entry.home != home:
                continue
            count += 1
            # A float in both cases, so that the compiler need not make an object of it.
            number = entry.rank if by_rank else float(-entry.expires_at)
            order = entry.order
            if number < self._floor or (number == self._floor and order >= self._floor_order):
                self._pile.append(entry)
                self._laid += 1
                continue
            first = self._first
            if COMPILED:
                at = position(first, number, by_rank)
            else:
                at = bisect_left(first, number, key=RANK if by_rank else by_expiration)
            while at < len(first):
                other = first[at]
                there = other.rank if by_rank else float(-other.expires_at)
                if there != number or other.order <= order:
                    break
                at += 1
            first.insert(at, entry)
            if len(first) > 2 * SHORT:
                self._put_back()
        return count

    def _put_back(self) -> None:
        """Move half of the list to the pile, because it has become long."""
        first = self._first
        self._pile += first[:SHORT]
        self._laid += SHORT
        last = first[SHORT - 1]
        self._floor = last.rank if self._by_rank else by_expiration(last)
        self._floor_order = last.order
        del first[:SHORT]

    def _fetch(self) -> bool:
        """Refill the list, which is used up; return False if no event is left."""
        pile, heap = self._pile, self._heap
        if not pile and not heap:
            return False
        self._pile = []
        if not heap and LOOKS * self._laid >= len(pile):
            self._floor, self._floor_order = -inf, NEVER
            self._put(pile, 0)
            self._laid = 0
            return True
        by_rank = self._by_rank
        rows: list[tuple[float, int, E]] = []
        for entry in pile:
            number = -entry.rank if by_rank else float(entry.expires_at)
            rows.append((number, entry.order, entry))
        if len(rows) > len(heap):
            heap += rows
            heapify(heap)
        else:
            for row in rows:
                heappush(heap, row)
        while heap and len(self._first) < SHORT:
            self._first.append(heappop(heap)[2])
        self._first.reverse()
        self._floor, self._floor_order = (-heap[0][0], heap[0][1]) if heap else (-inf, NEVER)
        return True

    def _everything(self) -> list[E]:
        """Return all events, in no order."""
        return self._first + self._pile + [row[2] for row in self._heap]

    def _empty(self) -> None:
        self._first, self._pile, self._heap = [], [], []
        self._laid = 0
        self._floor, self._floor_order = -inf, NEVER


class Ranking(SortedEvents[E]):
    """Events, best first. An event counts here for as long as its `home` is this ranking's number.

    A new event is only appended to `new` until the best is asked for: it may have left by then.
    """

    __slots__ = ("_home", "new", "size")

    def __init__(self, number: int) -> None:
        super().__init__(by_rank=True)
        self._home = number
        self.new: list[E] = []
        """Events that came in since the best was last asked for. Where speed matters, callers
        append events directly after setting their `home`."""
        self.size = 0
        """How many sorted events there are at most: some may have left the ranking."""

    def push(self, entry: E) -> None:
        """Let the event count in this ranking from now on, and in no other."""
        entry.home = self._home
        self.new.append(entry)

    def peek(self) -> E | None:
        """Return the best event, which stays here; None if there is none."""
        if self.new:
            self._settle()
        first, home = self._first, self._home
        while first or self._fetch():
            entry = first[-1]
            if entry.home == home:
                return entry
            first.pop()
            self.size -= 1
        return None

    def take(self) -> E | None:
        """Remove the best event and return it; None if there is none."""
        entry = self.peek()
        if entry is not None:
            entry.home = 0
            self._first.pop()
            self.size -= 1
        return entry

    def take_some(self, limit: int | None) -> list[E]:
        """Remove the best events, at most `limit` (None: all), and return them, best first."""
        taken: list[E] = []
        if self.new:
            self._settle()
        first, home = self._first, self._home
        most = NEVER if limit is None else limit
        while len(taken) < most and (first or self._fetch()):
            entry = first.pop()
            self.size -= 1
            if entry.home == home:
                entry.home = 0
                taken.append(entry)
        return taken

    def take_all(self) -> list[E]:
        """Remove all events and return them, best first."""
        taken = self._clear()
        if len(taken) > 1:
            _sort(taken)
        return taken

    def sweep(self) -> None:
        """Remove the events that have left the ranking. Callers sweep when about as many have left
        as remain."""
        live = self._clear()
        for entry in live:
            entry.home = self._home
        self.new = live

    def _settle(self) -> None:
        """Put the new events where they belong."""
        new, self.new = self.new, []
        self.size += self._put(new, self._home)

    def _clear(self) -> list[E]:
        """Remove all events and return them in no order; they count in no ranking then."""
        found, self.new = self.new, []
        if self.size:
            found = found + self._everything()
            self._empty()
            self.size = 0
        live: list[E] = []
        home = self._home
        for entry in found:
            if entry.home == home:
                entry.home = 0  # An event that came back may be here twice.
                live.append(entry)
        return live


def _sort(entries: list[E]) -> None:
    if len(entries) > FEW:
        entries.sort(key=ORDER)
        entries.sort(key=RANK, reverse=True)
        return
    for at in range(1, len(entries)):
        entry, free = entries[at], at
        while free:
            other = entries[free - 1]
            if other.rank > entry.rank or (other.rank == entry.rank and other.order <= entry.order):
                break
            entries[free] = other
            free -= 1
        entries[free] = entry


class Deadlines(SortedEvents[E]):
    """Events that expire, the next one first. The owner knows which of them are already over."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(by_rank=False)

    def push(self, entry: E, live: dict[int, E]) -> None:
        """Add an event that expires. `live` are the events that are not over; only they are kept
        here."""
        if len(self._first) + len(self._pile) + len(self._heap) > 2 * len(live) + SWEEP:
            self._empty()
            self._put([other for other in live.values() if other.expires_at != NEVER], 0)
        else:
            self._put([entry], 0)

    def due(self) -> Micros:
        """Return when the next event expires; NEVER if none does."""
        first = self._first
        if not first and not self._fetch():
            return NEVER
        entry = first[-1]
        return entry.expires_at

    def take(self, now: Micros) -> E | None:
        """Remove an event that has expired and return it; None if none has."""
        first = self._first
        if not first and not self._fetch():
            return None
        entry = first[-1]
        if entry.expires_at > now:
            return None
        first.pop()
        return entry
