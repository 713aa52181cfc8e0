"""The restrictions on the simple form of a schema (RELAX NG, section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Flag, IntEnum, auto
from itertools import combinations

from lasthop_xml.relaxng.lexer import Position, failure
from lasthop_xml.relaxng.nameclass import is_finite, overlap
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
    reached,
)


class _Inside(Flag):
    """The kinds of patterns around a pattern, as far as they restrict it (RELAX NG, section
    7.1)."""

    NOTHING = 0
    START = auto()
    ATTRIBUTE = auto()
    LIST = auto()
    EXCEPT = auto()
    REPEATED = auto()
    REPEATED_GROUP = auto()


# RELAX NG, sections 7.1.1 (attribute), 7.1.3 (list), 7.1.4 (except), 7.1.5 (start) and 7.1.2 (a
# group that is repeated): the kinds of patterns that each must not contain.
_FORBIDDEN: tuple[tuple[_Inside, tuple[type[Pattern], ...], str], ...] = (
    (_Inside.ATTRIBUTE, (ElementPattern, Attribute), "an attribute"),
    (_Inside.LIST, (ListOf, ElementPattern, Attribute, Interleave, type(TEXT)), "a list"),
    (
        _Inside.EXCEPT,
        (
            Attribute,
            ElementPattern,
            ListOf,
            Group,
            Interleave,
            OneOrMore,
            type(TEXT),
            type(EMPTY),
        ),
        "the exceptions of a datatype",
    ),
    (
        _Inside.START,
        (Attribute, Data, Value, ListOf, Group, Interleave, OneOrMore, type(TEXT), type(EMPTY)),
        "the start of a grammar",
    ),
    (_Inside.REPEATED_GROUP, (Attribute,), "a repeated group"),
)

_CALLED: Mapping[type[Pattern], str] = {
    Attribute: "an attribute",
    Data: "a datatype",
    ElementPattern: "an element",
    Group: "a group",
    Interleave: "an interleave",
    ListOf: "a list",
    OneOrMore: "a repetition",
    Value: "a value",
    type(EMPTY): "empty",
    type(TEXT): "text",
}


class ContentType(IntEnum):
    """The kind of an element's content (RELAX NG, section 7.2); that of a group is the greatest of
    its parts' kinds."""

    EMPTY = 1
    COMPLEX = 2
    SIMPLE = 3


class Restrictions:
    """Checks the start pattern of a schema and all elements that can be reached from it."""

    def __init__(self, positions: Mapping[Pattern, Position]) -> None:
        self._positions = positions
        self._element: Position | None = None  # of the element that is being checked
        # A definition that is used several times is one pattern, and checked once.
        self._types: dict[Pattern, ContentType] = {}
        self._apart_already: set[tuple[Pattern, bool]] = set()

    def check(self, start: Pattern, at: Position) -> list[ElementPattern]:
        """Return all elements in the order in which they are reached; raise SchemaError for the
        first that breaks a restriction."""
        self._element = at
        self._paths(start, _Inside.START, set())
        found = dict.fromkeys(_elements(start))
        waiting = list(found)
        while waiting:
            element = waiting.pop(0)
            self._element = self._positions[element]
            self._check_content(element.content)
            new = [each for each in _elements(element.content) if each not in found]
            found.update(dict.fromkeys(new))
            waiting += new
        return list(found)

    def _check_content(self, content: Pattern) -> None:
        self._paths(content, _Inside.NOTHING, set())
        self._content_type(content)
        self._attributes(content, repeated=False)

    def _fail(self, detail: str, pattern: Pattern, **fields: object) -> None:
        at = self._positions.get(pattern) or self._element
        if at is not None:
            raise failure(detail, at, **fields)

    def _paths(self, pattern: Pattern, inside: _Inside, seen: set[tuple[Pattern, _Inside]]) -> None:
        if (pattern, inside) in seen:
            return
        seen.add((pattern, inside))
        for where, kinds, label in _FORBIDDEN:
            if where & inside and isinstance(pattern, kinds):
                what = _CALLED[type(pattern)]
                self._fail("a pattern is not allowed here", pattern, found=what, inside=label)
        match pattern:
            case Attribute():
                self._paths(pattern.content, inside | _Inside.ATTRIBUTE, seen)
            case ListOf():
                self._paths(pattern.content, inside | _Inside.LIST, seen)
            case OneOrMore():
                self._paths(pattern.content, inside | _Inside.REPEATED, seen)
            case Data() if pattern.exclude is not None:
                self._paths(pattern.exclude, inside | _Inside.EXCEPT, seen)
            case Group() | Interleave():
                if inside & _Inside.REPEATED:
                    inside |= _Inside.REPEATED_GROUP
                for part in pattern.parts:
                    self._paths(part, inside, seen)
            case Choice():
                for part in pattern.parts:
                    self._paths(part, inside, seen)
            case _:
                pass

    def _content_type(self, pattern: Pattern) -> ContentType:
        """Return the kind of content of a pattern; refuse a datatype that is not an element's only
        content (RELAX NG, section 7.2)."""
        found = self._types.get(pattern)
        if found is None:
            found = self._types[pattern] = self._new_content_type(pattern)
        return found

    def _new_content_type(self, pattern: Pattern) -> ContentType:
        match pattern:
            case Data():
                if pattern.exclude is not None:
                    self._content_type(pattern.exclude)
                return ContentType.SIMPLE
            case Value() | ListOf():
                return ContentType.SIMPLE
            case Attribute():
                self._content_type(pattern.content)
                return ContentType.EMPTY
            case Choice():
                return max(map(self._content_type, pattern.parts))
            case OneOrMore():
                return self._together((pattern.content, pattern.content))
            case Group() | Interleave():
                return self._together(pattern.parts)
            case _:
                return ContentType.EMPTY if pattern is EMPTY else ContentType.COMPLEX

    def _together(self, parts: Iterable[Pattern]) -> ContentType:
        types = [type_ for type_ in map(self._content_type, parts) if type_ != ContentType.EMPTY]
        if len(types) > 1 and ContentType.SIMPLE in types:
            self._fail("a datatype has to be the only content of its element", EMPTY)
        return max(types, default=ContentType.EMPTY)

    def _attributes(self, pattern: Pattern, *, repeated: bool) -> None:
        """Refuse attributes and interleaves that are ambiguous (RELAX NG, sections 7.3 and 7.4)."""
        if (pattern, repeated) in self._apart_already:
            return
        self._apart_already.add((pattern, repeated))
        match pattern:
            case Attribute():
                if not repeated and not is_finite(pattern.names):
                    self._fail("an attribute of any name must be repeatable: add + or *", pattern)
            case OneOrMore():
                self._attributes(pattern.content, repeated=True)
            case Choice():
                for part in pattern.parts:
                    self._attributes(part, repeated=repeated)
            case Group() | Interleave():
                for part in pattern.parts:
                    self._attributes(part, repeated=repeated)
                self._apart(pattern)
            case _:
                pass

    def _apart(self, pattern: Group | Interleave) -> None:
        attributes = [list(_attributes(part)) for part in pattern.parts]
        for some, others in combinations(attributes, 2):
            for one in some:
                if any(overlap(one.names, other.names) for other in others):
                    self._fail("an element could have an attribute twice", one)
        if isinstance(pattern, Group):
            return
        if sum(map(_has_text, pattern.parts)) > 1:
            self._fail("an interleave has text in two parts", pattern)
        elements = [list(_elements(part)) for part in pattern.parts]
        for some_elements, other_elements in combinations(elements, 2):
            for element in some_elements:
                if any(overlap(element.names, other.names) for other in other_elements):
                    self._fail("an interleave has an element in two parts", element)


def _attributes(pattern: Pattern) -> Iterator[Attribute]:
    return (each for each in reached(pattern) if isinstance(each, Attribute))


def _elements(pattern: Pattern) -> Iterator[ElementPattern]:
    return (each for each in reached(pattern) if isinstance(each, ElementPattern))


def _has_text(pattern: Pattern) -> bool:
    return any(each is TEXT for each in reached(pattern))
