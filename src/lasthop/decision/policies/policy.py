"""The interface of a forwarding policy: what a feed asks it, and what a feed tells it.

A policy decides how much of an on-demand topic goes to the device before the user asks for it. It
belongs to one feed and may learn from it. It sees counts and times, never events, so it cannot
break a promise about them: which event goes is always a matter of rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lasthop.clock import HOUR, Micros

UNBOUNDED: Final = (1 << 62) - 1
"""The answer of `room` when any number of events may go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The parameters that the user or the pipeline has chosen for a policy; each policy uses some
    of them."""

    max: int | None = None
    """The subscription's Max, the largest number of events that a read shows; `None`: unlimited."""
    prefetch_limit: int | None = None
    """The largest number of unread events on the device; for a policy that learns this limit, its
    first value."""
    expiration_threshold: Micros | None = None
    """Events that expire within this time (in microseconds) are not prefetched; for a policy that
    learns the threshold, the value that is used while nothing better was learned."""
    waking_hours: Micros = 16 * HOUR + HOUR // 2
    """The part of a day in which the user can read at all, in microseconds."""
    price: float = 1.0
    """How many events that were forwarded in vain are as bad as one lost event, for a policy that
    compares them."""


class Policy:
    """The simplest policy: forwards everything and learns nothing. Every other policy overrides
    some of its methods."""

    unworthy = "not prefetched"
    """The reason given for holding an event that the policy does not find worth sending ahead."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning

    def arrived(self, *, lifetime: Micros | None, now: Micros) -> Micros:
        """Note the arrival of an event at or above Threshold; return how long to wait until its
        rank can be trusted."""
        return 0

    def read(self, *, wanted: int, offline: bool, at: Micros) -> None:
        """Note that the user looked for the best `wanted` events, maybe some time ago."""

    def rank_fell(self, *, age: Micros) -> None:
        """Note that an event fell below Threshold at this age."""

    def forwarded(self) -> None:
        """Note that an event was sent ahead of a read."""

    def room(self, *, on_device: int) -> int:
        """Return how many events may be sent ahead now."""
        return UNBOUNDED

    def worth(self, *, lifetime: Micros | None, now: Micros) -> bool:
        """Return whether an event that lives on for `lifetime` is worth sending ahead of a read."""
        return True
