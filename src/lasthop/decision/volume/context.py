"""Subscriptions that follow the user: rules from a device's context to topics.

A rule applies while the context meets its conditions: traffic news only at home. Names in braces
are filled in from the context: traffic news of the city that the device is in. Every update of the
context is compared with the present subscriptions, and only the difference is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import NamedTuple

from lasthop.decision.volume.subscription import Subscription

SEPARATORS = frozenset("./*# ")
"""Characters that have a special meaning in the name of a topic."""

Conditions = Mapping[str, frozenset[str]]
"""The accepted values, for every name of the context that a condition mentions."""


class Subscribe(NamedTuple):
    """Subscribe the device to the topic with this subscription, or replace the one it has."""

    topic: str
    subscription: Subscription


class Unsubscribe(NamedTuple):
    """End the device's subscription to the topic."""

    topic: str


class Mute(NamedTuple):
    """Silence the topic, or end its silence."""

    topic: str
    quiet: bool


Change = Subscribe | Unsubscribe | Mute


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A subscription, and the context in which the device has it."""

    topic: str
    """The topic, such as `traffic/{city}`: names in braces are filled in from the context."""
    subscription: Subscription
    when: Conditions = field(default_factory=dict)
    """The context in which the rule applies; without conditions it always applies."""
    quiet_when: Conditions | None = None
    """The context in which the topic is muted, such as a meeting; None: never."""

    def __post_init__(self) -> None:
        for _, name, form, conversion in Formatter().parse(self.topic):
            if name is not None and (not name.isidentifier() or form or conversion):
                raise ValueError(f"{{{name}}} in a topic is not the plain name of a context value")

    def topic_in(self, context: Mapping[str, str]) -> str | None:
        """Return the topic that the rule yields in this context; None if the rule does not
        apply."""
        if not meets(context, self.when):
            return None
        parts = []
        for text, name, _, _ in Formatter().parse(self.topic):
            parts.append(text)
            if name is not None:
                value = context.get(name, "")
                # A device's context fills in one level of the topic's name; it must not add levels.
                if not value or set(value) & SEPARATORS or not value.isprintable():
                    return None
                parts.append(value)
        return "".join(parts)


def meets(context: Mapping[str, str], conditions: Conditions) -> bool:
    """Return whether the context meets every condition."""
    return all(context.get(name) in values for name, values in conditions.items())


class ContextRules:
    """The rules of one device, and the subscriptions that they have made."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._topics: dict[str, tuple[Subscription, bool]] = {}

    def update(self, context: Mapping[str, str]) -> list[Change]:
        """Return the changes of subscriptions that the new context of the device causes. If several
        rules yield one topic, the first decides about it."""
        wanted: dict[str, tuple[Subscription, bool]] = {}
        for rule in self._rules:
            topic = rule.topic_in(context)
            if topic is not None:
                quiet = rule.quiet_when is not None and meets(context, rule.quiet_when)
                wanted.setdefault(topic, (rule.subscription, quiet))
        changes: list[Change] = [Unsubscribe(t) for t in self._topics if t not in wanted]
        for topic, (subscription, quiet) in wanted.items():
            had, was_quiet = self._topics.get(topic, (None, False))
            if had != subscription:
                changes.append(Subscribe(topic, subscription))
            if quiet != was_quiet:
                changes.append(Mute(topic, quiet))
        self._topics = wanted
        return changes
