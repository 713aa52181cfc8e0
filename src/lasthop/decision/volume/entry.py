"""One event as a feed knows it, and heaps of events that find the best without a search.

Nothing is ever taken out of the middle of a heap. An entry that moves or changes its rank gets a
new version; what carries an old one is skipped when it comes up, and swept out when it is most of
the heap.
"""

from __future__ import annotations

from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from lasthop.clock import Micros

NEVER: Final[Micros] = 1 << 62
"""When an event without expiration expires."""

SWEEP: Final = 64
"""A heap as small as this is not worth sweeping."""


class Place(Enum):
    """Where an event is."""

    DELAYED = "delayed"
    """At the gateway, until it is old enough to be trusted with its rank."""
    PREFETCH = "prefetch"
    """At the gateway, and may go when there is room."""
    HOLDING = "holding"
    """At the gateway, for a read to ask for."""
    BELOW = "below"
    """At the gateway, ranked below Threshold."""
    DEVICE = "device"
    """On the device, unread."""
    ENDED = "ended"


class Entry:
    """One event that is not over."""

    __slots__ = (
        "arrived_at",
        "due",
        "expires_at",
        "key",
        "order",
        "place",
        "rank",
        "reason",
        "version",
    )

    def __init__(
        self, key: int, rank: float, expires_at: Micros, order: int, arrived_at: Micros
    ) -> None:
        self.key = key
        self.rank = rank
        self.expires_at = expires_at
        self.order = order
        """Among equal ranks the older comes first."""
        self.arrived_at = arrived_at
        self.due: Micros = 0
        """When a delayed one may go."""
        self.place = Place.BELOW
        self.version = 0
        self.reason = ""
        """Why it is where it is."""

    def __lt__(self, other: Entry) -> bool:
        """Only asked of an event that came back and what a heap still has of its first time."""
        return self.version < other.version


Ranked: TypeAlias = tuple[float, int, int, Entry]
"""Rank (negative, so that the best sorts first), order, version."""


class Ranking:
    """A heap of entries, best first."""

    __slots__ = ("_sweep_at", "rows")

    def __init__(self) -> None:
        self.rows: list[Ranked] = []
        """Empty if nothing is in the ranking; some of what is here may be out of date."""
        self._sweep_at = SWEEP

    def push(self, entry: Entry) -> None:
        """Enter it in its present version."""
        rows = self.rows
        if len(rows) >= self._sweep_at:
            self._sweep()
            rows = self.rows
        heappush(rows, (-entry.rank, entry.order, entry.version, entry))

    def _sweep(self) -> None:
        """Leave out what is out of date, if that is most of the heap."""
        live = [row for row in self.rows if row[2] == row[3].version]
        if 2 * len(live) < len(self.rows):
            heapify(live)
            self.rows = live
        self._sweep_at = 2 * len(self.rows) + SWEEP

    def peek(self) -> Entry | None:
        """The best of all."""
        rows = self.rows
        while rows:
            row = rows[0]
            entry = row[3]
            if row[2] == entry.version:
                return entry
            heappop(rows)
        return None

    def take(self) -> Entry | None:
        """The best of all, which is then no longer here."""
        rows = self.rows
        while rows:
            row = heappop(rows)
            entry = row[3]
            if row[2] == entry.version:
                return entry
        return None

    def take_all(self) -> list[Entry]:
        """All of them, best first; faster than one by one."""
        rows, self.rows = self.rows, []
        rows.sort()
        return [row[3] for row in rows if row[2] == row[3].version]


def better(one: Entry | None, other: Entry | None) -> Entry | None:
    """Which of them is to be read first."""
    if one is None:
        return other
    if other is None or one.rank > other.rank:
        return one
    return one if one.rank == other.rank and one.order < other.order else other
