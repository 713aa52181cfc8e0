"""The first of many events, without a search and without sorting what nobody asks for.

Whoever reads takes a few of the best, and most of the others are never read. So only the first ones
are kept in order, in a short list; what comes after them lies on a pile. When the list is used up
it gets the next ones from there; who asks for many makes a heap of the pile. Nothing is ever taken
out of the middle: what has moved on is skipped when it comes up, and swept out when it is most of
what is here.
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
"""How many are kept in order, at most twice as many: the reads of some days, and a list in which an
insertion costs next to nothing."""

FEW: Final = 16
"""So many are put in order one by one: what came in during an outage, mostly."""

LOOKS: Final = 16
"""The next ones are found by going through the pile, which takes less than a heap does, as long as
no event is looked at more often than this, on average."""

SWEEP: Final = 64
"""What is as small as this is not worth sweeping."""

E = TypeVar("E", bound=Ranked)

ORDER, RANK = attrgetter("order"), attrgetter("rank")


def by_expiration(entry: Ranked) -> float:
    """The sooner it expires, the higher."""
    return float(-entry.expires_at)


def position(entries: list[E], number: float, by_rank: bool) -> int:
    """What `bisect_left` gives; compiled, it is the faster of the two."""
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


class Shelf(Generic[E]):
    """Events by a number, the highest first; among equals the one with the lower order."""

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
        """Or else by expiration, the sooner the higher."""
        self._first: list[E] = []
        """In order: the very first is at the end of the list."""
        self._floor = -inf
        self._floor_order: int = NEVER
        """What comes after this lies on the pile or on the heap."""
        self._pile: list[E] = []
        self._laid = 0
        """How many have been laid there since the pile was last gone through."""
        self._heap: list[tuple[float, int, E]] = []
        """The number (negative, so that the highest sorts first), the order."""

    def _put(self, entries: list[E], home: int) -> int:
        """Put them where they belong; only those of this home, unless it is 0. How many."""
        by_rank = self._by_rank
        count = 0
        for entry in entries:
            if home and entry.home != home:
                continue
            count += 1
            # A float either way, so that the compiler need not make an object of it.
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
        """The list has become long: only half of it stays."""
        first = self._first
        self._pile += first[:SHORT]
        self._laid += SHORT
        last = first[SHORT - 1]
        self._floor = last.rank if self._by_rank else by_expiration(last)
        self._floor_order = last.order
        del first[:SHORT]

    def _fetch(self) -> bool:
        """The list is used up: get the next ones; whether there are any."""
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
        """All that are here, in no order."""
        return self._first + self._pile + [row[2] for row in self._heap]

    def _empty(self) -> None:
        self._first, self._pile, self._heap = [], [], []
        self._laid = 0
        self._floor, self._floor_order = -inf, NEVER


class Ranking(Shelf[E]):
    """Events, best first. One counts here for as long as its `home` is this ranking's number.

    What comes in is only put down until somebody asks for the best: it may have moved on by then.
    """

    __slots__ = ("_home", "new", "size")

    def __init__(self, number: int) -> None:
        super().__init__(by_rank=True)
        self._home = number
        self.new: list[E] = []
        """What came in, and nobody has asked since. Where it matters, events whose home has been
        set are put here without a call."""
        self.size = 0
        """How many more there are at most: some may have moved on."""

    def push(self, entry: E) -> None:
        """Let it count here from now on, and nowhere else."""
        entry.home = self._home
        self.new.append(entry)

    def peek(self) -> E | None:
        """The best of all."""
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
        """The best of all, which is then no longer here."""
        entry = self.peek()
        if entry is not None:
            entry.home = 0
            self._first.pop()
            self.size -= 1
        return entry

    def take_some(self, limit: int | None) -> list[E]:
        """The best of all, so many, which are then no longer here."""
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
        """All of them, best first."""
        taken = self._clear()
        if len(taken) > 1:
            _sort(taken)
        return taken

    def sweep(self) -> None:
        """Leave out what has moved on. For whoever lets so many move on as there are here."""
        live = self._clear()
        for entry in live:
            entry.home = self._home
        self.new = live

    def _settle(self) -> None:
        """Put what is new where it belongs."""
        new, self.new = self.new, []
        self.size += self._put(new, self._home)

    def _clear(self) -> list[E]:
        """Take all of them away, in no order; they count nowhere then."""
        found, self.new = self.new, []
        if self.size:
            found = found + self._everything()
            self._empty()
            self.size = 0
        live: list[E] = []
        home = self._home
        for entry in found:
            if entry.home == home:
                entry.home = 0  # What came back may be here twice.
                live.append(entry)
        return live


def _sort(entries: list[E]) -> None:
    """Best first."""
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


class Deadlines(Shelf[E]):
    """Events that expire, the next first. Whether one is over already is for others to know."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(by_rank=False)

    def push(self, entry: E, live: dict[int, E]) -> None:
        """It expires, and is one of those that are not over: only they need be here."""
        if len(self._first) + len(self._pile) + len(self._heap) > 2 * len(live) + SWEEP:
            self._empty()
            self._put([other for other in live.values() if other.expires_at != NEVER], 0)
        else:
            self._put([entry], 0)

    def due(self) -> Micros:
        """When the next one expires."""
        first = self._first
        if not first and not self._fetch():
            return NEVER
        entry = first[-1]
        return entry.expires_at

    def take(self, now: Micros) -> E | None:
        """One whose time has come, which is then no longer here."""
        first = self._first
        if not first and not self._fetch():
            return None
        entry = first[-1]
        if entry.expires_at > now:
            return None
        first.pop()
        return entry
