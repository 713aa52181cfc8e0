"""Cache policies: which answers a cache uses, and which it evicts first. A policy decides from an
entry's times alone; a new one is a subclass with two or three short methods."""

from __future__ import annotations

import msgspec

from lasthop.clock import SECOND, Micros


class Entry(msgspec.Struct, array_like=True):
    """The times of a cached answer, in microseconds."""

    stored: Micros
    expires: Micros
    """The time until which the answer is fresh."""
    stale_until: Micros
    """The time until which the answer may be used while the device is away, if the answer says so;
    otherwise 0."""
    used: Micros
    """The time at which the answer was last used."""


class CachePolicy:
    """Uses answers while they are fresh, and evicts the one that was stored first."""

    def __init__(self, capacity: int = 1000) -> None:
        """Keep at most `capacity` answers."""
        if capacity < 1:
            raise ValueError("a cache must keep at least one answer")
        self.capacity = capacity

    def serves(self, entry: Entry, *, now: Micros, online: bool) -> bool:
        """Whether this answer may be used now; `online` tells whether the device is connected."""
        return now < entry.expires

    def over(self, entry: Entry, *, now: Micros) -> bool:
        """Whether this answer can never be used again."""
        return now >= entry.expires

    def worth(self, entry: Entry) -> int:
        """Return the worth of an answer; if there are too many answers, the one with the lowest
        worth is evicted."""
        return entry.stored


class TimeToLive(CachePolicy):
    """Uses answers while they are fresh, and evicts the one that expires first."""

    def worth(self, entry: Entry) -> int:
        return entry.expires


class Lru(CachePolicy):
    """Uses answers while they are fresh, and evicts the one that was least recently used."""

    def worth(self, entry: Entry) -> int:
        return entry.used


class StaleWhileAway(Lru):
    """Uses expired answers too while the device is away, and evicts the least recently used one."""

    def __init__(self, capacity: int = 1000, *, stale_for: float = 86_400) -> None:
        """Use an answer up to `stale_for` seconds after it has expired, unless the answer itself
        says otherwise (`stale-while-away`)."""
        super().__init__(capacity)
        self._stale_for = round(stale_for * SECOND)

    def serves(self, entry: Entry, *, now: Micros, online: bool) -> bool:
        return now < entry.expires or (not online and not self.over(entry, now=now))

    def over(self, entry: Entry, *, now: Micros) -> bool:
        return now >= (entry.stale_until or entry.expires + self._stale_for)
