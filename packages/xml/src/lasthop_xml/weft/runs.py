"""Documents as runs and values: the form that Weft works on, which fast producers can make
directly.

A document is cut at its values: `run 0, value 1, run 1, ... value n, run n`. A run is everything
between two values (tags, prefix mappings, xsi:type), and has the kind of the value that comes next;
the last run of a document has none. A message of 242 events is some 44 runs and 43 values, and a
connection has a few dozen different runs, so codecs that work on runs do little per event.

Equal runs are one object in the whole process, so comparing them costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from lasthop_xml.weft.exact import natural
from lasthop_xml.xas.errors import MalformedEvents, UnknownType
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    DOCUMENT_END,
    DOCUMENT_START,
    ELEMENT_END,
    ELEMENT_START,
    ENTITY_REFERENCE,
    PROCESSING_INSTRUCTION,
    TYPED_CONTENT,
    Event,
    Kind,
)
from lasthop_xml.xas.names import XSD_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.types.table import PRIMITIVES

MAX_RUN: Final = 1024
"""The largest number of events of a run. A tag has a handful; a longer run would only let a peer
repeat, for one byte each time, what was once sent."""


# The shapes of values: how the values after a run are predicted and written. Plain numbers, since
# hot loops compare them.
NOTHING: Final = 0
"""There is no value, since the document ends."""
TEXT: Final = 1
NUMBER: Final = 2
"""Integers of at most 64 bits."""
BOOLEAN: Final = 3
TIME: Final = 4
FRACTION: Final = 5
BYTES: Final = 6
NAME: Final = 7
"""Texts that start with a name: processing instructions and entity references."""
LEXICAL: Final = 8
"""Values of any other type, as text."""

_SHAPES: Final = {
    **dict.fromkeys(("byte", "short", "int", "long"), NUMBER),
    **dict.fromkeys(("unsignedByte", "unsignedShort", "unsignedInt"), NUMBER),
    **dict.fromkeys(("hexBinary", "base64Binary"), BYTES),
    "string": TEXT,
    "boolean": BOOLEAN,
    "dateTime": TIME,
    "double": FRACTION,
}

_new = tuple.__new__
_known: WeakValueDictionary[tuple[tuple[Event, ...], Kind | None, Name | None], Run]


class Run:
    """The events between two values, and the kind of the second value. Made only by `run_of`."""

    __slots__ = (
        "__weakref__",
        "closes",
        "events",
        "name",
        "opens",
        "rises",
        "shape",
        "slot",
        "tail",
    )

    def __init__(self, events: tuple[Event, ...], slot: Kind | None, name: Name | None) -> None:
        self.events = events
        self.slot = slot
        """The kind of the event that carries the next value; None at the end of a document."""
        self.name = name
        """The name of the attribute or of the type in the event that carries the next value."""
        self.shape = _shape(slot, name)
        self.closes, self.opens, self.rises = _nesting(events)
        # A column is identified by the open elements and what was opened last, whatever was closed
        # before, so that all members of a list have the same column.
        cut = _cut(events)
        self.tail: Run | None = run_of(events[cut:], slot, name) if cut else None
        """The run from its last element start, or after its last element end; None if that is the
        whole run."""

    def __repr__(self) -> str:
        return f"Run({', '.join(map(repr, self.events))} -> {self.slot!r} {self.name or ''})"


_known = WeakValueDictionary()


def run_of(events: tuple[Event, ...], slot: Kind | None, name: Name | None = None) -> Run:
    """Return the run of these events; `slot` and `name` are the kind and the name of the event that
    carries the value after the run."""
    key = events, slot, name
    run = _known.get(key)
    if run is None:
        if len(events) > MAX_RUN:
            raise MalformedEvents("too many events stand between two values", most=MAX_RUN)
        run = _known[key] = Run(events, slot, name)
    return run


def _shape(slot: Kind | None, name: Name | None) -> int:
    if slot is None:
        return NOTHING
    if slot is PROCESSING_INSTRUCTION or slot is ENTITY_REFERENCE:
        return NAME
    if slot is not TYPED_CONTENT:
        return TEXT
    if name is None or name not in PRIMITIVES:
        raise UnknownType("no primitive type has this name", type=str(name))
    return _SHAPES.get(name.local, LEXICAL) if name.ns == XSD_NS else LEXICAL


def _cut(events: tuple[Event, ...]) -> int:
    for at in range(len(events) - 1, -1, -1):
        if events[at].kind is ELEMENT_START:
            return at
        if events[at].kind is ELEMENT_END:
            return at + 1
    return 0


def _nesting(events: tuple[Event, ...]) -> tuple[tuple[Name, ...], tuple[Name, ...], int]:
    """Return the elements that end here but started earlier, those that only start here, and how
    many of the latter were open at once."""
    closes: list[Name] = []
    opens: list[Name] = []
    rises = 0
    for kind, name, _ in events:
        if kind is ELEMENT_START and name is not None:
            opens.append(name)
            rises = max(rises, len(opens))
        elif kind is ELEMENT_END and name is not None:
            if not opens:
                closes.append(name)
            elif opens.pop() != name:
                raise MalformedEvents("an element ends that is not open", name=str(name))
        elif kind is ATTRIBUTE and name != XSI_TYPE:
            raise MalformedEvents(
                "a run must not contain the value of an attribute", name=str(name)
            )
    return tuple(closes), tuple(opens), rises


class RunSequence(msgspec.Struct, eq=False):
    """A document as runs and values. Iterating over it gives its events.

    Values are those of the events, except where Python finds two values equal that XML writes
    differently: see `exact`.
    """

    runs: Sequence[Run]
    values: Sequence[Any]
    """The values of the document, one fewer than its runs."""
    _events: EventList | None = None

    def events(self) -> EventList:
        """Return all events; they are made at the first call."""
        if self._events is None:
            out = EventList([DOCUMENT_START])
            extend, add = out.extend, out.append
            for run, value in zip(self.runs, self.values, strict=False):
                extend(run.events)
                slot, name = run.slot, run.name
                if slot is TYPED_CONTENT:
                    value = natural(name, value)  # noqa: PLW2901
                add(_new(Event, (slot, name, value)))
            extend(self.runs[-1].events)
            add(DOCUMENT_END)
            self._events = out
        return self._events

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events())

    def at(self, index: int) -> Event | None:
        return self.events().at(index)

    def release(self, before: int) -> None:
        """Do nothing: a document in memory keeps all its events."""
