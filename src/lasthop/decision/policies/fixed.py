"""Policies that learn nothing: forward everything, forward nothing, or obey one fixed limit."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.decision.policies.policy import Policy


class OnLine(Policy):
    """Forward everything as soon as there is contact: the best service, and the most waste."""


class OnDemand(Policy):
    """Forward what a read asks for, and nothing else: no waste, and the worst service."""

    unworthy = "kept for a read"

    def worth(self, *, lifetime: Micros | None, now: Micros) -> bool:
        return False


class Buffer(Policy):
    """Keep at most `prefetch_limit` unread events on the device."""

    LIMIT = 16
    """The number of unread events kept on the device if no `prefetch_limit` is set: as many as two
    reads a day of eight events each take, the low end of the range in which neither waste nor loss
    shows."""

    def room(self, *, on_device: int) -> int:
        limit = self.tuning.prefetch_limit
        return (self.LIMIT if limit is None else limit) - on_device


class Expiration(Policy):
    """Forward only events that live on for at least `expiration_threshold`."""

    unworthy = "expires before the threshold"

    def worth(self, *, lifetime: Micros | None, now: Micros) -> bool:
        return lifetime is None or lifetime >= (self.tuning.expiration_threshold or 0)
