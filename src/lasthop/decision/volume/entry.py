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


BELOW: Final = Place.BELOW
"""Where an event begins."""


class Ranked:
    """An event among others. What heaps sort by never changes: with another rank it is another
    object."""

    __slots__ = ("expires_at", "home", "key", "order", "rank")

    def __init__(self, key: int, rank: float, expires_at: Micros, order: int) -> None:
        self.key = key
        self.rank = rank
        self.expires_at = expires_at
        self.order = order
        """Among equal ranks the lower comes first."""
        self.home = 0
        """The number of the ranking that it counts in; 0 for none. Other rankings may still have it
        and skip it."""

    def __lt__(self, other: Ranked) -> bool:
        """Only asked of objects that stand for one event at one rank: either may come first."""
        return False


class Entry(Ranked):
    """One event that is not over, at the gateway."""

    __slots__ = ("arrived_at", "due", "place", "reason")

    def __init__(self, key: int, rank: float, expires_at: Micros, arrived_at: Micros) -> None:
        # Not by way of super(): one of these is made for every event.
        self.key = self.order = key  # Keys grow with time, so they tell who came first.
        self.rank = rank
        self.expires_at = expires_at
        self.home = 0
        self.arrived_at = arrived_at
        self.due: Micros = 0
        """When a delayed one may go."""
        self.place = BELOW
        self.reason = ""
        """Why it is where it is."""

    def reranked(self, rank: float) -> Entry:
        """The same event at another rank, in the same place; this one has ended."""
        entry = Entry(self.key, rank, self.expires_at, self.arrived_at)
        entry.due, entry.place, entry.reason = self.due, self.place, self.reason
        self.home = 0
        self.place = Place.ENDED
        return entry


def better(one: Entry | None, other: Entry | None) -> Entry | None:
    """Which of them is to be read first."""
    if one is None:
        return other
    if other is None or one.rank > other.rank:
        return one
    return one if one.rank == other.rank and one.order < other.order else other
