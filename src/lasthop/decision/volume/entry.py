"""One event as a feed knows it, and as a device does."""

from __future__ import annotations

from enum import Enum
from typing import Final

from lasthop.clock import Micros

NEVER: Final[Micros] = (1 << 62) - 1
"""When an event without expiration expires: the largest number that the compiled build can do
without an object."""


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


BELOW: Final = Place.BELOW.value
"""Where an event begins."""


class Ranked:
    """An event among others. What heaps sort by never changes: with another rank it is another
    object."""

    __slots__ = ("expires_at", "home", "key", "order", "rank")

    key: int
    rank: float
    expires_at: Micros
    order: int
    """Among equal ranks the lower comes first."""
    home: int
    """The number of the ranking that it counts in; 0 for none. Other rankings may still have it and
    skip it."""

    def __lt__(self, other: Ranked) -> bool:
        """Only asked of objects that stand for one event at one rank: either may come first."""
        return False


class Entry(Ranked):
    """One event that is not over, at the gateway."""

    __slots__ = ("arrived_at", "due", "place", "reason")

    arrived_at: Micros
    due: Micros
    """When a delayed one may go."""
    place: str
    """The value of its `Place`: what is numbers and strings needs no garbage collection."""
    reason: str
    """Why it is where it is."""

    def reranked(self, rank: float) -> Entry:
        """The same event at another rank, in the same place; this one has ended."""
        entry = new_entry(self.key, rank, self.expires_at, self.arrived_at)
        entry.due, entry.place, entry.reason = self.due, self.place, self.reason
        self.home = 0
        self.place = Place.ENDED.value
        return entry


# Functions and not constructors: for every event one is made here and one on the device, and the
# compiled build makes what has no constructor without putting all this into Python's objects.


def new_ranked(key: int, rank: float, expires_at: Micros, order: int) -> Ranked:
    """An event that counts nowhere yet."""
    event = Ranked.__new__(Ranked)
    event.key = key
    event.rank = rank
    event.expires_at = expires_at
    event.order = order
    event.home = 0
    return event


def new_entry(key: int, rank: float, expires_at: Micros, arrived_at: Micros) -> Entry:
    """An event that is nowhere yet."""
    entry = Entry.__new__(Entry)
    entry.key = entry.order = key  # Keys grow with time, so they tell who came first.
    entry.rank = rank
    entry.expires_at = expires_at
    entry.home = 0
    entry.arrived_at = arrived_at
    entry.due = 0
    entry.place = BELOW
    entry.reason = ""
    return entry


def better(one: Entry | None, other: Entry | None) -> Entry | None:
    """Which of them is to be read first."""
    if one is None:
        return other
    if other is None or one.rank > other.rank:
        return one
    return one if one.rank == other.rank and one.order < other.order else other
