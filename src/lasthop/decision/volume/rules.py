"""Rules from a device's context to its subscriptions, as people write them in REST and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from lasthop.decision.volume.context import Conditions, Rule
from lasthop.decision.volume.subscription import Subscription
from lasthop.decision.volume.terms import TopicTerms, Words
from lasthop.errors import InvalidRequest

MAX_RULES = 64
"""The largest number of rules of one device: every report of a context goes through all of them."""


class ContextRule(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """A topic to subscribe to, its terms, and the context in which the device has it."""

    topic: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="The topic, such as traffic.{city}: the context fills in names in braces",
        ),
    ]
    when: Annotated[
        Words | None, Meta(description="The context in which the rule applies; without it, always")
    ] = None
    quiet_when: Annotated[
        Words | None, Meta(description="The context in which the topic is muted")
    ] = None
    terms: TopicTerms | None = None

    def rule(self) -> Rule:
        """Return the rule as `ContextRules` takes it. Raises InvalidRequest."""
        try:
            return Rule(
                topic=self.topic,
                subscription=Subscription(),
                when=conditions(self.when) or {},
                quiet_when=conditions(self.quiet_when),
            )
        except ValueError as error:
            raise InvalidRequest(f"topic: {error}", field="topic") from None


def conditions(words: Mapping[str, list[str]] | None) -> Conditions | None:
    """Return conditions in the form that a rule takes; None stays None."""
    if words is None:
        return None
    return {name: frozenset(values) for name, values in words.items()}


_decode = msgspec.json.Decoder(str).decode


def plain(context: Mapping[str, bytes]) -> dict[str, str]:
    """Return a context as rules compare it: texts as they are, numbers and booleans as JSON writes
    them."""
    values: dict[str, str] = {}
    for name, raw in context.items():
        if raw[:1] == b'"':
            values[name] = _decode(raw)
        elif raw[:1] not in (b"[", b"{", b"n"):
            values[name] = raw.decode()
    return values
