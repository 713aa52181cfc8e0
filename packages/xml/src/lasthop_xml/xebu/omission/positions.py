"""The positions in an element's content: where in its pattern a document can be.

A position is one place of a pattern at which an element, a value or a text is allowed; what may
come next depends on the last position alone (Glushkov's construction). That is exact for groups,
choices and repetitions in which a name occurs once. Inside an interleave, anything of the other
parts may come next: any order, and nothing is foreseen. Attributes are listed apart, since their
order means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lasthop_xml.relaxng.patterns import (
    EMPTY,
    TEXT,
    Attribute,
    Choice,
    Data,
    ElementPattern,
    Group,
    Interleave,
    ListOf,
    OneOrMore,
    Pattern,
    Value,
)

MOST_POSITIONS = 1000
"""The largest number of positions of one element. Above that nothing of its content is foreseen;
patterns that use one another can be short and still have millions."""


class TooManyPositions(Exception):
    """An element's content has more positions than the limit."""


class Part(NamedTuple):
    """What is known about a part of a pattern: whether it may be empty, and its first and last
    positions."""

    nullable: bool
    first: tuple[int, ...]
    last: tuple[int, ...]


class Positions:
    """The positions of one element's content, and which may follow which."""

    def __init__(self, content: Pattern) -> None:
        self.leaves: list[Pattern] = []
        self.follow: list[dict[int, None]] = []
        """For each position, those that can follow it, in the order of the schema."""
        self.repeated: set[int] = set()
        """The positions that begin something that can be repeated."""
        self.loose: set[int] = set()
        """The positions inside an interleave, or in mixed content."""
        self.whole = self._part(content)

    def _leaf(self, pattern: Pattern) -> Part:
        if len(self.leaves) >= MOST_POSITIONS:
            raise TooManyPositions
        self.leaves.append(pattern)
        self.follow.append({})
        only = (len(self.leaves) - 1,)
        return Part(nullable=pattern is TEXT, first=only, last=only)

    def _part(self, pattern: Pattern) -> Part:
        match pattern:
            case ElementPattern() | Data() | Value() | ListOf():
                return self._leaf(pattern)
            case Choice():
                return self._either([self._part(part) for part in pattern.parts])
            case Group():
                return self._in_turn([self._part(part) for part in pattern.parts])
            case Interleave():
                return self._shuffled(pattern.parts)
            case OneOrMore():
                begin = len(self.leaves)
                found = self._part(pattern.content)
                self._connect(found.last, found.first)
                self.repeated.update(found.first)
                if any(self.leaves[each] is TEXT for each in found.first):
                    # This is mixed content, written without `mixed`.
                    self.loose.update(range(begin, len(self.leaves)))
                return found
            case _ if pattern is TEXT:
                return self._leaf(pattern)
            case _:  # empty, an attribute, or what nothing can match
                return Part(pattern is EMPTY or isinstance(pattern, Attribute), (), ())

    def _connect(self, from_: Iterable[int], to: Iterable[int]) -> None:
        new = dict.fromkeys(to)
        for position in from_:
            self.follow[position] |= new

    def _either(self, parts: list[Part]) -> Part:
        return Part(
            any(part.nullable for part in parts),
            tuple(first for part in parts for first in part.first),
            tuple(last for part in parts for last in part.last),
        )

    def _in_turn(self, parts: list[Part]) -> Part:
        whole = parts[0]
        for part in parts[1:]:
            self._connect(whole.last, part.first)
            first = whole.first + part.first if whole.nullable else whole.first
            last = whole.last + part.last if part.nullable else part.last
            whole = Part(whole.nullable and part.nullable, first, last)
        return whole

    def _shuffled(self, patterns: Iterable[Pattern]) -> Part:
        parts: list[Part] = []
        inside: list[range] = []
        for pattern in patterns:
            begin = len(self.leaves)
            parts.append(self._part(pattern))
            inside.append(range(begin, len(self.leaves)))
        for some in inside:
            self.loose.update(some)
            for others in inside:
                if others is not some:
                    self._connect(some, others)
        whole = self._either(parts)
        return whole._replace(nullable=all(part.nullable for part in parts))


class KnownAttribute(NamedTuple):
    """An attribute that an element can have, and whether the element must have it."""

    pattern: Attribute
    required: bool


def attributes_of(content: Pattern) -> list[KnownAttribute]:
    """Return the attributes of an element, in the order of the schema."""
    found: dict[Attribute, None] = {}
    required = _required(content, found, {})
    return [KnownAttribute(attribute, attribute in required) for attribute in found]


def _required(
    pattern: Pattern, found: dict[Attribute, None], known: dict[Pattern, frozenset[Attribute]]
) -> frozenset[Attribute]:
    """Return the attributes that cannot be missing; add all attributes to `found`."""
    if pattern in known:
        return known[pattern]
    needed: frozenset[Attribute] = frozenset()
    match pattern:
        case Attribute():
            found[pattern] = None
            needed = frozenset((pattern,))
        case OneOrMore():
            needed = _required(pattern.content, found, known)
        case Group() | Interleave():
            needed = needed.union(*(_required(part, found, known) for part in pattern.parts))
        case Choice():
            parts = [_required(part, found, known) for part in pattern.parts]
            needed = parts[0].intersection(*parts[1:])
        case _:
            pass
    known[pattern] = needed
    return needed
