"""One event of a ranked topic, as a feed at the gateway holds it and as a device does."""

from __future__ import annotations

from enum import Enum
from typing import Final

from lasthop.clock import Micros

NEVER: Final[Micros] = (1 << 62) - 1
"""The expiration of an event that never expires: the largest number that the compiled build can
hold without an object."""


class Place(Enum):
    """Where an event of a feed is: at the gateway or on the device."""

    DELAYED = "delayed"
    """At the gateway, until the event is old enough for its rank to be trusted."""
    PREFETCH = "prefetch"
    """At the gateway; the event is sent ahead when there is room."""
    HOLDING = "holding"
    """At the gateway, until a read asks for the event."""
    BELOW = "below"
    """At the gateway, because the event ranks below Threshold."""
    DEVICE = "device"
    """On the device, as an unread event."""
    ENDED = "ended"


BELOW: Final = Place.BELOW.value
"""The place in which a new event begins."""


class Ranked:
    """An event in a ranking. The values that heaps sort by never change: an event with another rank
    is another object."""

    __slots__ = ("expires_at", "home", "key", "order", "rank")

    key: int
    rank: float
    expires_at: Micros
    order: int
    """The position among events of equal rank: the lower comes first."""
    home: int
    """The number of the ranking that the event counts in; 0 for none. Other rankings may still
    contain the event, and skip it."""

    def __lt__(self, other: Ranked) -> bool:
        """Return False: only asked of two objects for one event at one rank, so either may come
        first."""
        return False


class FeedEntry(Ranked):
    """One event at the gateway that is neither read nor expired."""

    __slots__ = ("arrived_at", "due", "place", "reason")

    arrived_at: Micros
    due: Micros
    """When a delayed event may go to the device."""
    place: str
    """The value of the event's `Place`: an object of numbers and strings needs no garbage
    collection."""
    reason: str
    """The reason why the event is in this place."""

    def reranked(self, rank: float) -> FeedEntry:
        """Return the same event at another rank, in the same place; the present object has
        ended."""
        entry = new_entry(self.key, rank, self.expires_at, self.arrived_at)
        entry.due, entry.place, entry.reason = self.due, self.place, self.reason
        self.home = 0
        self.place = Place.ENDED.value
        return entry


# These are functions and not constructors because one object is made here for every event and one
# on the device: the compiled build fills an object without a constructor from C values directly.


def new_ranked(key: int, rank: float, expires_at: Micros, order: int) -> Ranked:
    """Return a new event that counts in no ranking yet."""
    event = Ranked.__new__(Ranked)
    event.key = key
    event.rank = rank
    event.expires_at = expires_at
    event.order = order
    event.home = 0
    return event


def new_entry(key: int, rank: float, expires_at: Micros, arrived_at: Micros) -> FeedEntry:
    """Return a new event at the gateway that counts in no ranking yet."""
    entry = FeedEntry.__new__(FeedEntry)
    entry.key = entry.order = key  # Keys grow with time, so they say which came first.
    entry.rank = rank
    entry.expires_at = expires_at
    entry.home = 0
    entry.arrived_at = arrived_at
    entry.due = 0
    entry.place = BELOW
    entry.reason = ""
    return entry


def better(one: FeedEntry | None, other: FeedEntry | None) -> FeedEntry | None:
    """Return the one of two events that is to be read first; either may be missing."""
    if one is None:
        return other
    if other is None or one.rank > other.rank:
        return one
    return one if one.rank == other.rank and one.order < other.order else other
