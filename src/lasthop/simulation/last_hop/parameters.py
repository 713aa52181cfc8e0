"""What a rehearsal of the last hop depends on; a set of these makes its numbers, nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from lasthop.clock import HOUR, Micros
from lasthop.decision.policies import POLICIES, Tuning
from lasthop.decision.volume.subscription import Subscription


class Distribution(StrEnum):
    """How lifetimes spread around their mean."""

    EXPONENTIAL = "exponential"
    UNIFORM = "uniform"
    """Between nothing and twice the mean."""
    NORMAL = "normal"
    """With a quarter of the mean as its deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """One run: the world, the subscription, the policy, the seed."""

    event_frequency: float = 32.0
    """Events a day, at Poisson's moments."""
    user_frequency: float = 2.0
    """Reads a day, on average."""
    user_deviation: float = 0.1
    """Of the reads of a day, as a share of `user_frequency`."""
    max: int | None = 8
    threshold: float = 0.0
    """Ranks are spread evenly between 0 and 1."""
    outage: float = 0.0
    """The share of time without a link."""
    outage_frequency: float = 16.0
    """Outages a day."""
    outage_deviation: float = 1.5
    """Of the length of an outage, as a multiple of its mean; 1 is that of an exponential one."""
    expiration: float | None = None
    """Hours that an event lives on average; none lives for ever."""
    expiration_distribution: Distribution = Distribution.EXPONENTIAL
    expiring_portion: float = 1.0
    """The share of events that expire."""
    rank_drop: float = 0.0
    """The share of events that fall below Threshold after publication."""
    rank_drop_delay: float = 1.0
    """Hours until they do, on average (exponential)."""
    storage: int | None = None
    """Unread events that fit on the device."""
    policy: str = "unified"
    prefetch_limit: int | None = None
    expiration_threshold: float | None = None
    """Hours."""
    price: float = 1.0
    """What one lost event is worth in wasted ones, to the predictive policy."""
    years: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"unknown policy {self.policy}: choose from {', '.join(POLICIES)}")
        for name in ("outage", "expiring_portion", "rank_drop"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share between 0 and 1")
        for name in ("event_frequency", "outage_frequency", "years"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is above 0")
        for name in ("user_frequency", "user_deviation", "outage_deviation", "rank_drop_delay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is not negative")

    def on_line(self) -> Parameters:
        """The same world under the policy that loses nothing, and has nothing to tune."""
        return replace(
            self, policy="on-line", prefetch_limit=None, expiration_threshold=None, price=1.0
        )

    def subscription(self) -> Subscription:
        """What the user asks for."""
        return Subscription(max=self.max, threshold=self.threshold, storage=self.storage)

    def tuning(self) -> Tuning:
        """What the policy is told."""
        threshold = self.expiration_threshold
        return Tuning(
            max=self.max,
            prefetch_limit=self.prefetch_limit,
            expiration_threshold=None if threshold is None else micros(threshold),
            price=self.price,
        )


def micros(hours: float) -> Micros:
    """Hours as the engine counts time."""
    return round(hours * HOUR)
