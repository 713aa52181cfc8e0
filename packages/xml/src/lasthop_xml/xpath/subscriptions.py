"""Who wants which documents: the table of a content-based router."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, Generic, TypeVar, cast

from lasthop_xml.xas.limits import DEFAULT_LIMITS, Limits
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xpath.automaton import Anchor
from lasthop_xml.xpath.errors import XPathTooLarge
from lasthop_xml.xpath.matcher import Matcher
from lasthop_xml.xpath.parser import parse
from lasthop_xml.xpath.pattern import Condition, Pattern

MOST: Final = 1_000_000
"""Subscriptions. One takes some 2 kB, so this is what a large process can hold."""

MOVED: Final = 2
"""Subscriptions that go over into a new automaton with each change: one would keep up with what is
removed, and each takes some 100 microseconds, in which a router does nothing else."""

K = TypeVar("K", bound=Hashable)


class _Automaton(Generic[K]):
    """What messages run along."""

    __slots__ = ("_conditions", "document")

    def __init__(self) -> None:
        self.document = Anchor()
        self._conditions: dict[Pattern, Condition] = {}

    def enter(self, key: K, patterns: tuple[Pattern, ...]) -> None:
        """Let a key be found by its patterns, as it may be already."""
        for pattern in patterns:
            condition = self._conditions.get(pattern)
            if condition is None:
                condition = self._conditions[pattern] = Condition(self.document)
                self.document.inner.add(pattern, condition)
            condition.subscribers.add(key)

    def leave(self, key: K, patterns: tuple[Pattern, ...]) -> None:
        """Let a key be found no longer, if it was."""
        for pattern in patterns:
            condition = self._conditions.get(pattern)
            if condition is not None:
                condition.subscribers.discard(key)


class Subscriptions(Generic[K]):
    """XPath expressions by who has them. Keys are whatever identifies a subscription."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._patterns: dict[K, tuple[Pattern, ...]] = {}
        self._automaton: _Automaton[K] = _Automaton()
        self._next: _Automaton[K] | None = None
        """Without what nobody wants any more, as far as it is built."""
        self._to_move: list[K] = []
        self._removed = 0

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
        self._automaton.enter(key, patterns)
        if self._next is not None:
            self._next.enter(key, patterns)
            self._move(self._next)

    def remove(self, key: K) -> None:
        """Unsubscribe; KeyError if it is not there."""
        patterns = self._patterns.pop(key)
        self._automaton.leave(key, patterns)
        self._removed += 1
        # What nobody wants any more stays in the automaton until there is more of it than of the
        # rest. Another one is built then, a little with each change.
        if self._next is None and self._removed > max(16, len(self._patterns)):
            self._next, self._to_move, self._removed = _Automaton(), list(self._patterns), 0
        if self._next is not None:
            self._next.leave(key, patterns)
            self._move(self._next)

    def _move(self, following: _Automaton[K]) -> None:
        for _ in range(min(MOVED, len(self._to_move))):
            key = self._to_move.pop()
            patterns = self._patterns.get(key)
            if patterns is not None:
                following.enter(key, patterns)
        if not self._to_move:
            self._automaton, self._next = following, None

    def matcher(self, *, limits: Limits = DEFAULT_LIMITS) -> Matcher:
        """For one document whose events come one by one; nobody may subscribe meanwhile."""
        return Matcher(self._automaton.document.inner, limits=limits)

    def matching(self, events: EventSequence, *, limits: Limits = DEFAULT_LIMITS) -> set[K]:
        """Who wants this document."""
        matcher = self.matcher(limits=limits)
        append = matcher.append
        for event in events:
            append(event)
        return cast(set[K], matcher.matched)
