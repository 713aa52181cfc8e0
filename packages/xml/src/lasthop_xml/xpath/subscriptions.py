"""The table of a content-based router: which subscriptions want which documents."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, Generic, TypeVar, cast

from lasthop_xml.xas.limits import DEFAULT_LIMITS, Limits
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xpath.automaton import Anchor
from lasthop_xml.xpath.errors import XPathTooLarge
from lasthop_xml.xpath.matcher import Matcher
from lasthop_xml.xpath.parser import parse
from lasthop_xml.xpath.pattern import Condition, PathPattern

MOST: Final = 1_000_000
"""The largest number of subscriptions of a table. One takes about 2 kB, so a large process can hold
this many."""

MOVED: Final = 2
"""Subscriptions that move into a new automaton with each change. One would only keep pace with
removals; each takes about 100 microseconds, during which a router does nothing else."""

K = TypeVar("K", bound=Hashable)


class _Automaton(Generic[K]):
    """An automaton for subscriptions, with the keys of those that share a pattern."""

    __slots__ = ("_conditions", "document")

    def __init__(self) -> None:
        self.document = Anchor()
        self._conditions: dict[PathPattern, Condition] = {}

    def enter(self, key: K, patterns: tuple[PathPattern, ...]) -> None:
        """Add a key to the patterns of its expression; it may be there already."""
        for pattern in patterns:
            condition = self._conditions.get(pattern)
            if condition is None:
                condition = self._conditions[pattern] = Condition(self.document)
                self.document.inner.add(pattern, condition)
            condition.subscribers.add(key)

    def leave(self, key: K, patterns: tuple[PathPattern, ...]) -> None:
        """Remove a key from the patterns of its expression, if it is there."""
        for pattern in patterns:
            condition = self._conditions.get(pattern)
            if condition is not None:
                condition.subscribers.discard(key)


class Subscriptions(Generic[K]):
    """XPath expressions by key; a key is any hashable object that identifies a subscription."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._patterns: dict[K, tuple[PathPattern, ...]] = {}
        self._automaton: _Automaton[K] = _Automaton()
        self._next: _Automaton[K] | None = None
        """The automaton that is being built without the patterns of removed subscriptions, or
        None."""
        self._to_move: list[K] = []
        self._removed = 0

    def __len__(self) -> int:
        return len(self._patterns)

    def __contains__(self, key: K) -> bool:
        return key in self._patterns

    def __iter__(self) -> Iterator[K]:
        return iter(self._patterns)

    def add(self, key: K, expression: str, *, prefixes: Mapping[str, str] | None = None) -> None:
        """Subscribe `key` to an expression, replacing its earlier one. An invalid expression raises
        an error and changes nothing."""
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
        """Remove a subscription; raise KeyError if there is none with this key."""
        patterns = self._patterns.pop(key)
        self._automaton.leave(key, patterns)
        self._removed += 1
        # Patterns without subscribers stay in the automaton until they outnumber the others. A new
        # automaton is then built, a little with each change.
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
        """Return a matcher for one document whose events come one by one; the table must not change
        meanwhile."""
        return Matcher(self._automaton.document.inner, limits=limits)

    def matching(self, events: EventSequence, *, limits: Limits = DEFAULT_LIMITS) -> set[K]:
        """Return the keys of the subscriptions that match a document."""
        matcher = self.matcher(limits=limits)
        append = matcher.append
        for event in events:
            append(event)
        return cast(set[K], matcher.matched)
