"""From plain sequences to typed ones: text becomes values where xsi:type gives a type (thesis,
section 4.4)."""

from __future__ import annotations

from collections.abc import Iterator

from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    ELEMENT_END,
    ELEMENT_START,
    PREFIX_MAPPING,
    TYPED_CONTENT,
    Event,
)
from lasthop_xml.xas.names import XSI_TYPE, Name
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xas.types.primitive import Primitive
from lasthop_xml.xas.types.table import PRIMITIVES

_new = tuple.__new__


def typed_sequence(events: EventSequence) -> Iterator[Event]:
    """Replace the text of an element by a value of its declared type, where that loses nothing.

    A text that is not in its type's canonical form stays as it is, so that writing the sequence as
    XML gives the same document again.
    """
    scope = outermost()
    outer: list[tuple[Scope, int]] = []
    depth, scoped = 0, -1
    mappings: list[Name] = []
    known: dict[str, Primitive | None] = {}  # by the text of xsi:type, in this scope
    primitive: Primitive | None = None  # declared by the start tag just read
    held: Event | None = None  # a text that is typed if its element ends with it
    for event in events:
        kind, name, text = event
        if held is not None:
            if kind is ELEMENT_END and primitive is not None:
                value = primitive.exactly(held.value)
                if value is not None:
                    held = _new(Event, (TYPED_CONTENT, primitive.name, value))
            yield held
            held = primitive = None
        if kind is ATTRIBUTE:
            if name is XSI_TYPE or name == XSI_TYPE:
                if text not in known:
                    known[text] = PRIMITIVES.get(scope.resolve(text))  # type: ignore[arg-type]
                primitive = known[text]
        elif kind is CONTENT:
            if primitive is not None:
                held = event
                continue
        else:
            primitive = None
            if kind is ELEMENT_START:
                if mappings:
                    outer.append((scope, scoped))
                    scope, scoped = scope.declare(mappings), depth
                    mappings = []
                    known = {}
                depth += 1
            elif kind is ELEMENT_END:
                depth -= 1
                if depth == scoped:
                    scope, scoped = outer.pop()
                    known = {}
            elif kind is PREFIX_MAPPING and name is not None:
                mappings.append(name)
        yield event
    if held is not None:
        yield held
