"""The name and the settings with which a gateway's core is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lasthop.core.apps.behaviour import Behaviour
from lasthop.core.limits import Limits
from lasthop.core.pushes.default_routes import DefaultRoute
from lasthop.core.pushes.notification import NotificationPatience
from lasthop.core.quota import Rate
from lasthop.core.rights.people import SignedTokens
from lasthop.core.rights.rule import AccessRule
from lasthop.core.surrogates.waiting import SurrogateTerms
from lasthop.decision.budgets import Limit
from lasthop.decision.routes import Variant
from lasthop.decision.volume.policy_choice import OnePolicy, PolicyBook


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The name of a gateway, and the settings that its core needs."""

    name: str = "gateway"
    node: int = 0
    open_house: bool = False
    accept: tuple[str, ...] = ()
    variants: frozenset[str] = frozenset(Variant)
    """The protocols that the gateway speaks over the air."""
    limits: Limits = field(default_factory=Limits)
    ppg_names: frozenset[str] = frozenset()
    """The PPG specifiers, in lower case, by which client addresses name this gateway; if there are
    none, every specifier is accepted."""
    default_routes: tuple[DefaultRoute, ...] = ()
    """How client addresses are reached that no device has, and who may address them."""
    patience: NotificationPatience = field(default_factory=NotificationPatience)
    policies: PolicyBook = field(default_factory=OnePolicy)
    """The policies by which messages are sent ahead of being read, for every device and topic."""
    shared: tuple[Limit, ...] = ()
    """The limits that all devices together share on their links."""
    zone: str = "UTC"
    """The time zone in which the days of the shared limits begin."""
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)
    """By app, the behaviour of its messages unless an administrator has set another one."""
    surrogates: Mapping[str, SurrogateTerms] = field(default_factory=dict)
    """By app, the terms on which its surrogate takes messages."""
    ways: tuple[tuple[str, str], ...] = ()
    """The ways that devices are told, each a link and a URL, unless their app has its own."""
    rules: tuple[AccessRule, ...] = ()
    """The rules of the configuration, which nobody changes over REST."""
    least: bool = False
    """Whether a device may send, subscribe and join only where a rule allows it."""
    tokens: SignedTokens | None = None
    """Reads tokens that issuers have signed; None if there are no issuers."""
    lanes: bool = False
    """Whether devices that know lanes get them; so far only rehearsals and tests say so."""
    unordered: frozenset[str] = frozenset()
    """The queues whose messages may be handed over out of order, where there are lanes."""
    device_messages: Rate | None = None
    """The rate at which one device may send messages; None if there is no limit."""
