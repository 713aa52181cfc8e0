"""Rules from a device's context to its subscriptions, as people write them."""

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
"""Every report of a context walks through all of them."""


class ContextRule(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """What to subscribe to, and when."""

    topic: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="traffic.{city}: names in braces are filled in from the context",
        ),
    ]
    when: Annotated[
        Words | None, Meta(description="The context in which it applies; always if there is none")
    ] = None
    quiet_when: Annotated[Words | None, Meta(description="The context in which it is quiet")] = None
    terms: TopicTerms | None = None

    def rule(self) -> Rule:
        """As the engine wants it. Raises InvalidRequest."""
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
    """What has to hold."""
    if words is None:
        return None
    return {name: frozenset(values) for name, values in words.items()}


_decode = msgspec.json.Decoder(str).decode


def plain(context: Mapping[str, bytes]) -> dict[str, str]:
    """A context as rules see it: texts as they are, numbers and truths as JSON writes them."""
    values: dict[str, str] = {}
    for name, raw in context.items():
        if raw[:1] == b'"':
            values[name] = _decode(raw)
        elif raw[:1] not in (b"[", b"{", b"n"):
            values[name] = raw.decode()
    return values
