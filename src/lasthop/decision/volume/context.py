"""Subscriptions that follow the user: rules from a device's context to topics.

A rule applies while the context meets its conditions: traffic news only at home. Names in braces
are filled in from the context: traffic news of whatever city the device is in. Every update of the
context is compared with what is subscribed, and only the difference is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import NamedTuple

from lasthop.decision.volume.subscription import Subscription

SEPARATORS = frozenset("./*# ")
"""What a topic's name means something by."""

Conditions = Mapping[str, frozenset[str]]
"""For every name that matters, the values that will do."""


class Subscribe(NamedTuple):
    """From now on, with these wishes; also if only the wishes are new."""

    topic: str
    subscription: Subscription


class Unsubscribe(NamedTuple):
    """No longer."""

    topic: str


class Mute(NamedTuple):
    """The topic goes quiet, or is heard again."""

    topic: str
    quiet: bool


Change = Subscribe | Unsubscribe | Mute


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What to subscribe to, and when."""

    topic: str
    """`traffic/{city}`: names in braces are those of the context."""
    subscription: Subscription
    when: Conditions = field(default_factory=dict)
    """No conditions: always."""
    quiet_when: Conditions | None = None
    """In which context the topic is muted (a meeting); never, if there is none."""

    def __post_init__(self) -> None:
        for _, name, form, conversion in Formatter().parse(self.topic):
            if name is not None and (not name.isidentifier() or form or conversion):
                raise ValueError(f"{{{name}}} in a topic is not the plain name of a context value")

    def topic_in(self, context: Mapping[str, str]) -> str | None:
        """The topic that the rule means here; none if it does not apply."""
        if not meets(context, self.when):
            return None
        parts = []
        for text, name, _, _ in Formatter().parse(self.topic):
            parts.append(text)
            if name is not None:
                value = context.get(name, "")
                # A device fills in a level of a name; it does not get to write the name.
                if not value or set(value) & SEPARATORS or not value.isprintable():
                    return None
                parts.append(value)
        return "".join(parts)


def meets(context: Mapping[str, str], conditions: Conditions) -> bool:
    """Whether every condition holds."""
    return all(context.get(name) in values for name, values in conditions.items())


class ContextRules:
    """One device's rules, and what they have subscribed it to."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._topics: dict[str, tuple[Subscription, bool]] = {}

    def update(self, context: Mapping[str, str]) -> list[Change]:
        """The device is somewhere else, or busy, or not: what changes. The first rule that means
        a topic decides about it."""
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
