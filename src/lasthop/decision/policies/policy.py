"""What a forwarding policy is: a few questions that a feed asks, and what it tells in return.

A policy decides how much of an on-demand topic goes to the device before the user asks for it. It
belongs to one feed and may learn from it. It sees counts and times, never events, so that it
cannot break a promise about them: which event goes is always a matter of rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lasthop.clock import HOUR, Micros

UNBOUNDED: Final = (1 << 62) - 1
"""Room for everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What the user, or the pipeline, has chosen. A policy takes from it what it understands."""

    max: int | None = None
    """The subscription's Max."""
    prefetch_limit: int | None = None
    """Unread events on the device; where it is learned, the value to begin with."""
    expiration_threshold: Micros | None = None
    """What expires sooner is not prefetched; where it is learned, the choice for when learning
    does not help."""
    waking_hours: Micros = 16 * HOUR + HOUR // 2
    """Of a day, in which reads can happen at all."""
    price: float = 1.0
    """How many forwarded in vain one lost event is worth, to a policy that weighs them."""


class Policy:
    """Forward everything, learn nothing; every policy says where it differs."""

    unworthy = "not prefetched"
    """Why it holds what it does not find worth the transfer."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning

    def arrived(self, *, lifetime: Micros | None, now: Micros) -> Micros:
        """An event at or above Threshold came in; how long to wait until its rank is to be
        trusted."""
        return 0

    def read(self, *, wanted: int, offline: bool, at: Micros) -> None:
        """The user looked for the best `wanted` events, maybe some time ago."""

    def rank_fell(self, *, age: Micros) -> None:
        """An event fell below Threshold so long after it came in."""

    def forwarded(self) -> None:
        """An event went out ahead of a read."""

    def room(self, *, on_device: int) -> int:
        """How many events may go now."""
        return UNBOUNDED

    def worth(self, *, lifetime: Micros | None, now: Micros) -> bool:
        """Whether an event that lives on for so long is worth sending ahead of a read."""
        return True
