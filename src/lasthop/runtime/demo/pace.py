"""Computes when bytes that enter a link leave it at the other end, without sockets or a clock."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.runtime.demo.profiles import LinkProfile


class DirectionPace:
    """One direction of one connection: bytes queue for the rate, then travel for the delay.

    Bytes that enter later never leave earlier, since a stream keeps its order.
    """

    def __init__(self, profile: LinkProfile, random: Callable[[], float]) -> None:
        self._profile = profile
        self._random = random
        self._free_at = 0.0
        """The time at which the last byte that entered has been put on the link."""
        self._last = 0.0

    def leaves(self, size: int, now: float) -> float:
        """Return the time at which bytes that enter now arrive at the other end."""
        profile = self._profile
        self._free_at = max(self._free_at, now) + size / profile.rate
        travels = profile.delay + profile.jitter * self._random()
        self._last = max(self._last, self._free_at + travels)
        return self._last
