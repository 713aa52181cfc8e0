"""The parameters of a rehearsal of the last hop; equal parameters give equal results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from lasthop.clock import HOUR, Micros
from lasthop.decision.policies import POLICIES, Tuning
from lasthop.decision.volume.policy_choice import DEFAULT_POLICY
from lasthop.decision.volume.subscription import Subscription


class Distribution(StrEnum):
    """How lifetimes are distributed around their mean."""

    EXPONENTIAL = "exponential"
    UNIFORM = "uniform"
    """Uniform between zero and twice the mean."""
    NORMAL = "normal"
    """Normal, with a quarter of the mean as the standard deviation."""


class Denominator(StrEnum):
    """What a loss is a share of."""

    READ = "read"
    """The events that are read under the on-line policy."""
    EVENTS = "events"
    """All events that the topic has had."""


class LifeJudged(StrEnum):
    """When the expiration policy compares an event's life with its threshold."""

    FORWARDING = "forwarding"
    """When the event could be forwarded: by what it has left to live."""
    ARRIVAL = "arrival"
    """When the event arrives, as figure 7 does: by its whole life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of one run: arrivals, reads and links, the subscription, the policy and the
    seed."""

    event_frequency: float = 32.0
    """Events per day, as a Poisson process."""
    user_frequency: float = 2.0
    """Reads of the user per day, on average."""
    user_deviation: float = 0.1
    """Standard deviation of the reads per day, as a share of `user_frequency`."""
    max: int | None = 8
    threshold: float = 0.0
    """The Threshold of the subscription; ranks are uniform between 0 and 1."""
    outage: float = 0.0
    """The share of time without a link."""
    outage_frequency: float = 16.0
    """Outages of the link per day, on average."""
    outage_deviation: float = 1.5
    """Standard deviation of an outage's length, as a multiple of the mean; an exponential one has
    1."""
    expiration: float | None = None
    """Mean lifetime of an event in hours; None: events do not expire."""
    expiration_distribution: Distribution = Distribution.EXPONENTIAL
    expiring_portion: float = 1.0
    """The share of events that expire."""
    rank_drop: float = 0.0
    """The share of events that fall below Threshold after publication."""
    rank_drop_delay: float = 1.0
    """Mean hours until a rank falls (exponential)."""
    storage: int | None = None
    """Unread events that fit on the device; None: any number."""
    policy: str = DEFAULT_POLICY
    prefetch_limit: int | None = None
    expiration_threshold: float | None = None
    """The expiration threshold of the policy, in hours; None: not set."""
    price: float = 1.0
    """How many wasted events one lost event is worth, for the predictive policy."""
    loss_of: Denominator = Denominator.READ
    life_judged: LifeJudged = LifeJudged.FORWARDING
    reads_wait: bool = False
    """Whether a look without a link is answered when the link is back; otherwise the user sees what
    is on the device, and no more."""
    years: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"unknown policy {self.policy}: choose from {', '.join(POLICIES)}")
        if self.life_judged is LifeJudged.ARRIVAL and self.policy not in ("expiration", "on-line"):
            raise ValueError("life_judged: only the expiration policy can judge at arrival")
        for name in ("outage", "expiring_portion", "rank_drop"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a share between 0 and 1")
        for name in ("event_frequency", "outage_frequency", "years"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0")
        for name in ("user_frequency", "user_deviation", "outage_deviation", "rank_drop_delay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative")

    def on_line(self) -> Parameters:
        """Return the same world under the on-line policy, which loses nothing and has nothing to
        tune."""
        return replace(
            self,
            policy="on-line",
            prefetch_limit=None,
            expiration_threshold=None,
            price=1.0,
            life_judged=LifeJudged.FORWARDING,
        )

    def subscription(self) -> Subscription:
        """Return the subscription of the user to the topic."""
        return Subscription(max=self.max, threshold=self.threshold, storage=self.storage)

    def tuning(self) -> Tuning:
        """Return the parameters that the policy gets."""
        threshold = self.expiration_threshold
        return Tuning(
            max=self.max,
            prefetch_limit=self.prefetch_limit,
            expiration_threshold=None if threshold is None else micros(threshold),
            price=self.price,
        )


def micros(hours: float) -> Micros:
    """Convert hours to microseconds, as feeds count time."""
    return round(hours * HOUR)
