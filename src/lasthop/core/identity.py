"""Who a gateway is, and what it takes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lasthop.core.apps.behaviour import Behaviour
from lasthop.core.limits import Limits
from lasthop.core.pushes.notification import NotificationPatience
from lasthop.core.surrogates.waiting import SurrogateTerms
from lasthop.decision.budgets import Limit
from lasthop.decision.routes import Variant
from lasthop.decision.volume.policy_choice import OnePolicy, PolicyBook


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this gateway is, and what it allows."""

    name: str = "gateway"
    node: int = 0
    open_house: bool = False
    accept: tuple[str, ...] = ()
    variants: frozenset[str] = frozenset(Variant)
    """What it speaks over the air."""
    limits: Limits = field(default_factory=Limits)
    ppg_names: frozenset[str] = frozenset()
    """PPG specifiers of client addresses that are ours, in lower case; none: all are."""
    patience: NotificationPatience = field(default_factory=NotificationPatience)
    policies: PolicyBook = field(default_factory=OnePolicy)
    """What is sent ahead of a read, for every device and topic."""
    shared: tuple[Limit, ...] = ()
    """What all devices together may use of their links."""
    zone: str = "UTC"
    """Where the days of the shared limits begin."""
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)
    """By app, what holds for its messages as long as nothing else is set."""
    surrogates: Mapping[str, SurrogateTerms] = field(default_factory=dict)
    """By app, what its surrogate may take up."""
