"""Who wants which documents: the table of a content-based router."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, Generic, TypeVar, cast

from lasthop.wire.xas.limits import DEFAULT_LIMITS, Limits
from lasthop.wire.xas.sequence import EventSequence
from lasthop.wire.xpath.automaton import Anchor
from lasthop.wire.xpath.errors import XPathTooLarge
from lasthop.wire.xpath.matcher import Matcher
from lasthop.wire.xpath.parser import parse
from lasthop.wire.xpath.pattern import Condition, Pattern

MOST: Final = 1_000_000
"""Subscriptions. One takes some 2 kB, so this is what a large process can hold."""

K = TypeVar("K", bound=Hashable)


class Subscriptions(Generic[K]):
    """XPath expressions by who has them. Keys are whatever identifies a subscription."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._patterns: dict[K, tuple[Pattern, ...]] = {}
        self._clear()

    def __len__(self) -> int:
        return len(self._patterns)

    def __contains__(self, key: K) -> bool:
        return key in self._patterns

    def __iter__(self) -> Iterator[K]:
        return iter(self._patterns)

    def add(self, key: K, expression: str, *, prefixes: Mapping[str, str] | None = None) -> None:
        """Subscribe, in place of what the key had before. A bad expression changes nothing."""
        patterns = parse(expression, prefixes)
        if key not in self._patterns and len(self._patterns) >= self._most:
            raise XPathTooLarge("there are too many subscriptions", most=self._most)
        if key in self._patterns:
            self.remove(key)
        self._patterns[key] = patterns
        self._enter(key, patterns)

    def remove(self, key: K) -> None:
        """Unsubscribe; KeyError if it is not there."""
        for pattern in self._patterns.pop(key):
            self._conditions[pattern].subscribers.discard(key)
        self._removed += 1
        # What nobody wants any more stays in the automaton until there is more of it than of the
        # rest: building it anew then costs each removal a constant share.
        if self._removed > max(16, len(self._patterns)):
            self._clear()
            for other, patterns in self._patterns.items():
                self._enter(other, patterns)

    def matcher(self, *, limits: Limits = DEFAULT_LIMITS) -> Matcher:
        """For one document whose events come one by one; nobody may subscribe meanwhile."""
        return Matcher(self._document.inner, limits=limits)

    def matching(self, events: EventSequence, *, limits: Limits = DEFAULT_LIMITS) -> set[K]:
        """Who wants this document."""
        matcher = self.matcher(limits=limits)
        append = matcher.append
        for event in events:
            append(event)
        return cast(set[K], matcher.matched)

    def _clear(self) -> None:
        self._document = Anchor()
        self._conditions: dict[Pattern, Condition] = {}
        self._removed = 0

    def _enter(self, key: K, patterns: tuple[Pattern, ...]) -> None:
        for pattern in patterns:
            condition = self._conditions.get(pattern)
            if condition is None:
                condition = self._conditions[pattern] = Condition(self._document)
                self._document.inner.add(pattern, condition)
            condition.subscribers.add(key)
