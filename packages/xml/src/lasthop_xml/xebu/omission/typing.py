"""From plain sequences to typed ones: text becomes values where the schema gives a type."""

from __future__ import annotations

from collections.abc import Iterator

from lasthop_xml.xas.events import ATTRIBUTE, CONTENT, ELEMENT_END, ELEMENT_START, Event, typed
from lasthop_xml.xas.names import XSD_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xas.types.table import PRIMITIVES
from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.machine import DocumentPosition

_STRING = Name(XSD_NS, "string")


def typed_by_schema(events: EventSequence, automaton: Automaton) -> Iterator[Event]:
    """Replace the text of an element by a value of its type, where that loses nothing.

    Elements with an xsi:type are left to `typed_sequence`. Strings stay texts, which get tokens.
    """
    place = DocumentPosition(automaton)
    announced = False  # the innermost open element has an xsi:type
    held: tuple[Event, Name] | None = None  # a text that is typed if its element ends with it
    for event in events:
        kind, name, _ = event
        if held is not None:
            yield _value(*held) if kind is ELEMENT_END else held[0]
            held = None
        if kind is ATTRIBUTE:
            announced = announced or name == XSI_TYPE
        elif kind is ELEMENT_START or kind is ELEMENT_END:
            announced = False
        type_ = place.state.type
        place.move(event)
        if kind is CONTENT and name is None and type_ not in (None, _STRING) and not announced:
            held = event, type_
        else:
            yield event


def _value(text: Event, type_: Name) -> Event:
    value = PRIMITIVES[type_].exactly(text.value)
    return text if value is None else typed(type_, value)
