"""A policy that forwards what is likely to be read before it expires, by the user's own rhythm.

An event that is sent ahead saves a loss if the user looks in time and has no contact then; it is
wasted if the user does not look in time. `price` says how many wasted events one loss is worth.
"""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.decision.policies.policy import UNBOUNDED, Tuning
from lasthop.decision.policies.rhythm import Rhythm
from lasthop.decision.policies.unified import Unified

OFFLINE_MEMORY = 0.98
"""The weight that the old estimate of offline reads keeps after one more read: about fifty reads
determine it."""


class Predictive(Unified):
    """Learns how much to keep on the device, as the unified algorithm does, and when the user
    reads."""

    unworthy = "unlikely to be read before it expires"

    def __init__(self, tuning: Tuning) -> None:
        super().__init__(tuning)
        self._rhythm = Rhythm()
        self._offline = 0.5

    def read(self, *, wanted: int, offline: bool, at: Micros) -> None:
        super().read(wanted=wanted, offline=offline, at=at)
        self._rhythm.read(at)
        self._offline += (1.0 - OFFLINE_MEMORY) * (offline - self._offline)

    def room(self, *, on_device: int) -> int:
        if self.tuning.max is None:
            return UNBOUNDED  # A user who reads everything needs no limit.
        # A user who prefers waste to loss keeps more on the device; no price keeps less than figure
        # 7 does.
        patience = max(1.0, (1.0 + self.tuning.price) / 2)
        return int(self.prefetch_limit * patience) - on_device

    def worth(self, *, lifetime: Micros | None, now: Micros) -> bool:
        if lifetime is None:
            return True
        chance = self._rhythm.chance(now, now + lifetime)
        return chance * self._offline * self.tuning.price >= 1.0 - chance
