"""Hypothesis strategies for values, events and documents."""

from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from lasthop_xml.xas.events import (
    DOCUMENT_END,
    DOCUMENT_START,
    Event,
    attribute,
    comment,
    content,
    end,
    entity,
    instruction,
    prefix,
    start,
    typed,
)
from lasthop_xml.xas.names import XSD_NS, XSI_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.types.numbers import Integer
from lasthop_xml.xas.types.table import PRIMITIVES
from lasthop_xml.xas.types.texts import QName
from lasthop_xml.xas.types.times import Duration

characters = st.characters(
    exclude_categories=("Cs", "Cc", "Cn"), include_characters="\t\n\r\u0085\u2028"
)
texts = st.text(characters, max_size=20) | st.sampled_from(["", "x", "w" * 300, "ä" * 600])
locals_ = st.sampled_from(["a", "b", "c", "näme", "名", "x-1.y", "a" * 300]) | st.from_regex(
    "[a-z_][a-z0-9._-]{0,8}", fullmatch=True
)
spaces = st.sampled_from(["", "urn:one", "urn:two", "urn:ä", "urn:" + "x" * 1200])
names = st.builds(Name, spaces, locals_)


def _zone(minutes: int) -> timezone:
    return timezone(timedelta(minutes=minutes))


zones = st.none() | st.just(UTC) | st.integers(-840, 840).filter(bool).map(_zone)


def _decimal(sign: int, digits: list[int], scale: int) -> Decimal:
    value = Decimal((sign, tuple(digits), -scale))
    return value if value else abs(value)


def _duration(sign: int, months: int, nanoseconds: int) -> Duration:
    return Duration(sign * months, sign * nanoseconds)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": texts,
    "boolean": st.booleans(),
    "decimal": st.builds(
        _decimal,
        st.integers(0, 1),
        st.lists(st.integers(0, 9), min_size=1, max_size=30),
        st.integers(0, 40),
    ),
    "float": st.floats(width=32),
    "double": st.floats(),
    "date": st.dates(),
    "time": st.times(timezones=zones),
    "dateTime": st.datetimes(timezones=zones),
    "duration": st.builds(
        _duration,
        st.sampled_from([-1, 1]),
        st.integers(0, 10**9),
        st.integers(0, 86400 * 10**15),
    ),
    "hexBinary": st.binary(max_size=20),
    "base64Binary": st.binary(max_size=20),
    "QName": st.builds(QName, st.just("") | locals_, locals_),
} | {
    primitive.name.local: st.integers(primitive.lowest, primitive.highest)
    | st.integers(max(primitive.lowest, -300), min(primitive.highest, 300))
    for primitive in PRIMITIVES.values()
    if isinstance(primitive, Integer)
}


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Name, Any]:
    """A type and one of its values."""
    local = draw(st.sampled_from(sorted(VALUES)))
    return Name(XSD_NS, local), draw(VALUES[local])


def _element(draw: st.DrawFn, depth: int) -> list[Event]:
    name = draw(names)
    keys = draw(st.lists(names, max_size=3, unique=True))
    mappings = draw(st.lists(st.tuples(spaces, locals_ | st.just("")), max_size=2))
    events = [prefix(ns, to) for ns, to in mappings]
    if draw(st.booleans()):
        type_, value = draw(typed_values())
        # Sometimes the type is declared, sometimes another one, and sometimes none.
        declared = draw(st.sampled_from([type_.local, "int", None]))
        events.append(prefix(XSD_NS, "xsd"))
        events.append(start(name))
        events += [attribute(key, draw(texts)) for key in keys]
        if declared:
            events.append(attribute(XSI_TYPE, f"xsd:{declared}"))
        events += [typed(type_, value)] * draw(st.sampled_from([1, 1, 1, 2, 5]))
    else:
        events.append(start(name))
        events += [attribute(key, draw(texts)) for key in keys]
        for _ in range(draw(st.integers(0, 3))):
            events += _part(draw, depth)
    events.append(end(name))
    return events


def _part(draw: st.DrawFn, depth: int) -> list[Event]:
    what: list[Callable[[], list[Event]]] = [
        lambda: [content(draw(texts))],
        lambda: [
            content(draw(texts)),
            *(content(text, same_text=True) for text in draw(st.lists(texts, max_size=3))),
        ],
        lambda: [comment(draw(texts))],
        lambda: [instruction(draw(locals_), draw(texts))],
        lambda: [entity(draw(locals_))],
    ]
    if depth < 4:
        what += [lambda: _element(draw, depth + 1)] * 3
    chosen: Callable[[], list[Event]] = draw(st.sampled_from(what))
    return chosen()


@st.composite
def documents(draw: st.DrawFn) -> EventList:
    """A document with every kind of event; more than XML could say exactly."""
    root = _element(draw, 0)
    return EventList([DOCUMENT_START, prefix(XSI_NS, "xsi"), *root, DOCUMENT_END])
