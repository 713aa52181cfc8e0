"""The first of many events, without a search and without sorting what nobody asks for.

Whoever reads takes a few of the best, and most of the others are never read. So only the first ones
are kept in order, in a short list; what comes after them lies on a pile. The pile becomes a heap
when the list is used up, which then gets the next ones. Nothing is ever taken out of the middle:
what has moved on is skipped when it comes up, and swept out when it is most of what is here.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heapify, heappop, heappush
from math import inf
from types import FunctionType
from typing import Final, Generic, TypeVar

from lasthop.clock import Micros
from lasthop.decision.volume.entry import NEVER, Ranked

SHORT: Final = 128
"""How many are kept in order, at most twice as many: the reads of some days, and a list in which an
insertion costs next to nothing."""

SWEEP: Final = 64
"""What is as small as this is not worth sweeping."""

E = TypeVar("E", bound=Ranked)


def position(numbers: list[float], number: float) -> int:
    """What `bisect_left` gives; compiled, it is the faster of the two."""
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


COMPILED: Final = not isinstance(position, FunctionType)


class Shelf(Generic[E]):
    """Events by a number, the highest first; among equals the one with the lower order."""

    __slots__ = ("_by_rank", "_first", "_floor", "_floor_order", "_heap", "_numbers", "_pile")

    def __init__(self, *, by_rank: bool) -> None:
        self._by_rank = by_rank
        """Or else by expiration, the sooner the higher."""
        self._numbers: list[float] = []
        self._first: list[E] = []
        """In order: the very first is at the end of the list."""
        self._floor = -inf
        self._floor_order: int = NEVER
        """What comes after this lies on the pile or on the heap."""
        self._pile: list[tuple[float, int, E]] = []
        self._heap: list[tuple[float, int, E]] = []
        """The number (negative, so that the highest sorts first), the order."""

    def _put(self, entries: list[E]) -> None:
        """Put them where they belong."""
        by_rank = self._by_rank
        for entry in entries:
            # A float either way, so that the compiler need not make an object of it.
            number = entry.rank if by_rank else float(-entry.expires_at)
            order = entry.order
            if number < self._floor or (number == self._floor and order >= self._floor_order):
                self._pile.append((-number, order, entry))
                continue
            numbers, first = self._numbers, self._first
            at = position(numbers, number) if COMPILED else bisect_left(numbers, number)
            while at < len(numbers) and numbers[at] == number and first[at].order > order:
                at += 1
            numbers.insert(at, number)
            first.insert(at, entry)
            if len(numbers) > 2 * SHORT:
                self._put_back()

    def _put_back(self) -> None:
        """The list has become long: only half of it stays."""
        numbers, first = self._numbers, self._first
        for at in range(SHORT):
            self._pile.append((-numbers[at], first[at].order, first[at]))
        self._floor, self._floor_order = numbers[SHORT - 1], first[SHORT - 1].order
        del numbers[:SHORT]
        del first[:SHORT]

    def _fetch(self) -> bool:
        """The list is used up: get the next ones; whether there are any."""
        pile, heap = self._pile, self._heap
        if not pile and not heap:
            return False
        if len(pile) > len(heap):
            heap += pile
            heapify(heap)
        else:
            for row in pile:
                heappush(heap, row)
        self._pile = []
        while heap and len(self._first) < SHORT:
            row = heappop(heap)
            self._numbers.append(-row[0])
            self._first.append(row[2])
        self._numbers.reverse()
        self._first.reverse()
        self._floor, self._floor_order = (-heap[0][0], heap[0][1]) if heap else (-inf, NEVER)
        return True

    def _everything(self) -> list[E]:
        """All that are here, in no order."""
        return self._first + [row[2] for row in self._pile] + [row[2] for row in self._heap]

    def _empty(self) -> None:
        self._numbers, self._first, self._pile, self._heap = [], [], [], []
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
            self._numbers.pop()
            self.size -= 1
        return None

    def take(self) -> E | None:
        """The best of all, which is then no longer here."""
        entry = self.peek()
        if entry is not None:
            entry.home = 0
            self._first.pop()
            self._numbers.pop()
            self.size -= 1
        return entry

    def take_some(self, limit: int | None) -> list[E]:
        """The best of all, so many, which are then no longer here."""
        taken: list[E] = []
        if self.new:
            self._settle()
        first, home = self._first, self._home
        while (limit is None or len(taken) < limit) and (first or self._fetch()):
            entry = first.pop()
            self._numbers.pop()
            self.size -= 1
            if entry.home == home:
                entry.home = 0
                taken.append(entry)
        return taken

    def take_all(self) -> list[E]:
        """All of them, best first."""
        taken = self._clear()
        if len(taken) > 1:
            taken.sort(key=_best_first)
        return taken

    def sweep(self) -> None:
        """Leave out what has moved on. For whoever lets so many move on as there are here."""
        live = self._clear()
        for entry in live:
            entry.home = self._home
        self.new = live

    def _settle(self) -> None:
        """Put what is new where it belongs."""
        home = self._home
        live = [entry for entry in self.new if entry.home == home]
        self.new = []
        self.size += len(live)
        self._put(live)

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


def _best_first(entry: Ranked) -> tuple[float, int]:
    return -entry.rank, entry.order


class Deadlines(Shelf[E]):
    """Events that expire, the next first. Whether one is over already is for others to know."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(by_rank=False)

    def push(self, entry: E, live: dict[int, E]) -> None:
        """It expires, and is one of those that are not over: only they need be here."""
        if len(self._first) + len(self._pile) + len(self._heap) > 2 * len(live) + SWEEP:
            self._empty()
            self._put([other for other in live.values() if other.expires_at != NEVER])
        else:
            self._put([entry])

    def due(self) -> Micros:
        """When the next one expires."""
        first = self._first
        return first[-1].expires_at if first or self._fetch() else NEVER

    def take(self, now: Micros) -> E | None:
        """One whose time has come, which is then no longer here."""
        first = self._first
        if (not first and not self._fetch()) or first[-1].expires_at > now:
            return None
        self._numbers.pop()
        return first.pop()
