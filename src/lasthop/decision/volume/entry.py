"""One event as a feed knows it, and heaps of events that find the best without a search.

Nothing is ever taken out of the middle of a heap. An entry that moves or changes its rank gets a
new version; what carries an old one is skipped when it comes up, and swept out when it is most of
the heap.
"""

from __future__ import annotations

from enum import Enum
from heapq import heapify, heappop, heappush

from lasthop.clock import Micros

NEVER: Micros = 1 << 62
"""When an event without expiration expires."""

SWEEP = 64
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


class Ranking(list[tuple[float, int, int, Entry]]):
    """A heap of entries, best first. It is true while anything is in it, be it out of date."""

    __slots__ = ("_sweep_at",)

    def __init__(self) -> None:
        super().__init__()
        self._sweep_at = SWEEP

    def push(self, entry: Entry) -> None:
        """Enter it in its present version."""
        if len(self) >= self._sweep_at:
            self[:] = [item for item in self if item[2] == item[3].version]
            heapify(self)
            self._sweep_at = 2 * len(self) + SWEEP
        heappush(self, (-entry.rank, entry.order, entry.version, entry))

    def peek(self) -> Entry | None:
        """The best of all."""
        while self:
            _, _, version, entry = self[0]
            if version == entry.version:
                return entry
            heappop(self)
        return None

    def take(self) -> Entry | None:
        """The best of all, which is then no longer here."""
        while self:
            _, _, version, entry = heappop(self)
            if version == entry.version:
                return entry
        return None


def ahead(one: Entry, other: Entry) -> bool:
    """Whether `one` is to be read before `other`."""
    return one.rank > other.rank or (one.rank == other.rank and one.order < other.order)
