"""Profiles from a schema: what both ends can know about its documents before there are any.

Sample documents are made that show every choice of the schema at least twice, a session learns from
them, and then their values are forgotten: what is left is runs, names, columns and what can follow
what. Peers that have the same schema make the same profile, so only the schema has to be shared.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

from lasthop_xml.relaxng.nameclass import names_of
from lasthop_xml.relaxng.patterns import (
    EMPTY,
    TEXT,
    Attribute,
    Choice,
    Data,
    ElementPattern,
    Group,
    Interleave,
    OneOrMore,
    Pattern,
    Value,
)
from lasthop_xml.relaxng.schema import Schema
from lasthop_xml.weft.profile import Profile
from lasthop_xml.weft.session import Level, WeftEncoder
from lasthop_xml.weft.snapshot import profile_of
from lasthop_xml.xas.events import (
    DOCUMENT_END,
    DOCUMENT_START,
    Event,
    attribute,
    content,
    end,
    start,
    typed,
)
from lasthop_xml.xas.names import XSD_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.types.numbers import Integer
from lasthop_xml.xas.types.table import PRIMITIVES
from lasthop_xml.xas.types.texts import QName
from lasthop_xml.xas.types.times import Duration

MOST_DOCUMENTS: Final = 40
"""The largest number of samples of a schema; for most schemas a dozen show everything."""
MOST_EVENTS: Final = 20_000
"""The largest number of events of one sample; a schema with many nested choices is shown only in
part."""
MOST_REPEATS: Final = 64
DEEPEST: Final = 16
"""The largest number of elements nested inside one another in a sample, unless the schema requires
more."""
_UNREACHABLE: Final = 10**6

_VALUES: Final[dict[str, Any]] = {
    "boolean": False,
    "decimal": Decimal(0),
    "float": 0.0,
    "double": 0.0,
    "date": date(1970, 1, 1),
    "time": time(0, 0),
    "dateTime": datetime(1970, 1, 1, tzinfo=UTC),
    "duration": Duration(0, 0),
    "hexBinary": b"",
    "base64Binary": b"",
    "QName": QName("", "a"),
}


def schema_profile(schema: Schema) -> Profile:
    """Return the profile of what both ends know from a schema alone, at any level."""
    encoder = WeftEncoder(Level.MAX)
    for document in Samples(schema).documents():
        encoder.encode(document)
    for column in encoder.learned.memory.column_list:
        column.forget()
        column.base.number = column.scale = 0
        column.current = 0
    return profile_of(encoder)


class Samples:
    """Makes sample documents that show what a schema allows."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._shown: Counter[tuple[int, int]] = Counter()
        """How often each part of each choice was taken."""
        self._choices: dict[int, Choice] = {}
        self._texts = 0
        self._room = 0
        self._heights = _heights(schema)

    def documents(self) -> list[EventList]:
        """Return sample documents in which every choice that was met is shown twice."""
        found: list[EventList] = []
        while len(found) < MOST_DOCUMENTS and not (found and self._all_shown()):
            self._room = MOST_EVENTS
            out: list[Event] = []
            self._content(self._schema.start, [], out, 0)
            found.append(EventList([DOCUMENT_START, *out, DOCUMENT_END]))
        return found

    def _all_shown(self) -> bool:
        return all(
            self._shown[key, at] >= 2
            for key, choice in self._choices.items()
            for at in range(len(choice.parts))
        )

    def _element(self, element: ElementPattern, out: list[Event], depth: int) -> None:
        name = next(names_of(element.names), None)
        if name is None:
            return
        attributes: list[Event] = []
        inside: list[Event] = []
        self._content(element.content, attributes, inside, depth + 1)
        out += [start(name), *attributes, *inside, end(name)]
        self._room -= len(attributes) + 2

    def _content(
        self, pattern: Pattern, attributes: list[Event], out: list[Event], depth: int
    ) -> None:
        match pattern:
            case ElementPattern():
                self._element(pattern, out, depth)
            case Attribute():
                self._attribute(pattern, attributes)
            case Group() | Interleave():
                for part in pattern.parts:
                    self._content(part, attributes, out, depth)
            case Choice():
                self._content(self._choose(pattern, depth), attributes, out, depth)
            case OneOrMore():
                self._repeat(pattern.content, attributes, out, depth)
            case Data():
                out.append(self._value(pattern, attributes))
            case Value():
                out.append(content(pattern.text))
            case _ if pattern is TEXT:
                out.append(content(self._text()))
            case _:
                pass

    def _attribute(self, pattern: Attribute, attributes: list[Event]) -> None:
        name = next(names_of(pattern.names), None)
        if name is not None and all(name != each.name for each in attributes):
            inside = pattern.content
            text = inside.text if isinstance(inside, Value) else self._text()
            attributes.append(attribute(XSI_TYPE if name == XSI_TYPE else name, text))

    def _choose(self, choice: Choice, depth: int) -> Pattern:
        """Return the part that was shown least, or the one that ends soonest if the depth is
        great."""
        key = id(choice)
        self._choices[key] = choice
        parts = choice.parts
        if depth > DEEPEST or self._room < 0:
            at = min(range(len(parts)), key=lambda each: self._height(parts[each]))
        else:
            at = min(range(len(parts)), key=lambda each: self._shown[key, each])
        self._shown[key, at] += 1
        return parts[at]

    def _repeat(
        self, pattern: Pattern, attributes: list[Event], out: list[Event], depth: int
    ) -> None:
        # Twice, and then as long as new parts of choices are shown.
        for count in range(MOST_REPEATS):
            before = len(self._shown)
            self._content(pattern, attributes, out, depth)
            if (count and len(self._shown) == before) or self._room < 0 or depth > DEEPEST:
                break

    def _value(self, data: Data, attributes: list[Event]) -> Event:
        declared = [each.value for each in attributes if each.name == XSI_TYPE]
        type_ = Name(XSD_NS, data.type.name)
        primitive = PRIMITIVES.get(type_)
        if not declared or declared[0].rpartition(":")[2] != type_.local or primitive is None:
            return content(self._text())
        if isinstance(primitive, Integer):
            return typed(type_, min(max(primitive.lowest, 0), primitive.highest))
        return typed(type_, _VALUES.get(type_.local, self._text()))

    def _text(self) -> str:
        """Return a new text: values must differ, since a name is told from a value by what follows
        it."""
        self._texts += 1
        return str(self._texts)

    def _height(self, pattern: Pattern) -> int:
        return _height(pattern, self._heights)


def _heights(schema: Schema) -> dict[int, int]:
    """Return the least number of nested elements of each element."""
    heights: dict[int, int] = {}
    changed = True
    while changed:
        changed = False
        for element in schema.elements:
            height = 1 + _height(element.content, heights)
            if height < heights.get(id(element), _UNREACHABLE):
                heights[id(element)] = height
                changed = True
    return heights


def _height(pattern: Pattern, heights: dict[int, int]) -> int:
    match pattern:
        case ElementPattern():
            return heights.get(id(pattern), _UNREACHABLE)
        case Group() | Interleave():
            return max(_height(part, heights) for part in pattern.parts)
        case Choice():
            return (
                0
                if EMPTY in pattern.parts
                else min(_height(part, heights) for part in pattern.parts)
            )
        case OneOrMore():
            return _height(pattern.content, heights)
        case _:
            return 0
