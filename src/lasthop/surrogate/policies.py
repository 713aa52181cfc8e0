"""What a cache answers with, and what it lets go of first. A policy decides from an entry's times
alone; a new one is a subclass with two or three short methods."""

from __future__ import annotations

import msgspec

from lasthop.clock import SECOND, Micros


class Entry(msgspec.Struct, array_like=True):
    """What is known of a cached answer beside what it says."""

    stored: Micros
    expires: Micros
    """Until when it is fresh."""
    stale_until: Micros
    """Until when it may do while the device is away, as the answer itself says; 0: it says
    nothing."""
    used: Micros
    """When it was last answered with."""


class CachePolicy:
    """Answers are used while they are fresh; the one that was stored first goes first."""

    def __init__(self, capacity: int = 1000) -> None:
        """At most `capacity` answers are kept."""
        if capacity < 1:
            raise ValueError("a cache keeps at least one answer")
        self.capacity = capacity

    def serves(self, entry: Entry, *, now: Micros, online: bool) -> bool:
        """Whether this entry may answer now."""
        return now < entry.expires

    def over(self, entry: Entry, *, now: Micros) -> bool:
        """Whether this entry can never answer again."""
        return now >= entry.expires

    def worth(self, entry: Entry) -> int:
        """Of too many, the entry with the least goes."""
        return entry.stored


class TimeToLive(CachePolicy):
    """What expires first goes first."""

    def worth(self, entry: Entry) -> int:
        return entry.expires


class Lru(CachePolicy):
    """What was not asked for for the longest time goes first."""

    def worth(self, entry: Entry) -> int:
        return entry.used


class StaleWhileAway(Lru):
    """While the device is away, old answers are better than none."""

    def __init__(self, capacity: int = 1000, *, stale_for: float = 86_400) -> None:
        """`stale_for` seconds after it has expired an answer is of no use even so, unless it says
        otherwise itself (`stale-while-away`)."""
        super().__init__(capacity)
        self._stale_for = round(stale_for * SECOND)

    def serves(self, entry: Entry, *, now: Micros, online: bool) -> bool:
        return now < entry.expires or (not online and not self.over(entry, now=now))

    def over(self, entry: Entry, *, now: Micros) -> bool:
        return now >= (entry.stale_until or entry.expires + self._stale_for)
