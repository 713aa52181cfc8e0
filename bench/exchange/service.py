"""What is exchanged: a call with a string, a date, a number and its sequence number; the answer is
the sequence number. SOAP 1.2 in both, as events, so that every format writes the same.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from lasthop_xml.xas.events import ELEMENT_START
from lasthop_xml.xas.names import XSD_NS, Name
from lasthop_xml.xas.reader import Reader
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.writer import TYPED_PREFIXES, Writer

SOAP: Final = "http://www.w3.org/2003/05/soap-envelope"
FLOOD: Final = "http://lasthop.example/ns/flood"
SERIAL: Final = Name("", "serial")
_PREFIXES: Final = {"soap": SOAP, "f": FLOOD, **TYPED_PREFIXES}
_WHEN: Final = datetime(2006, 3, 1, 9, 30, tzinfo=UTC)


def _xsd(local: str) -> Name:
    return Name(XSD_NS, local)


def _envelope(operation: str, fields: list[tuple[Name, Name, object]]) -> EventList:
    events = EventList()
    writer = Writer(events)
    with (
        writer.document(),
        writer.element(Name(SOAP, "Envelope"), prefixes=_PREFIXES),
        writer.element(Name(SOAP, "Body")),
        writer.element(Name(FLOOD, operation)),
    ):
        for name, type_, value in fields:
            writer.typed_element(name, type_, value)
    return events


def call(serial: int) -> EventList:
    return _envelope(
        "call",
        [
            (Name("", "text"), _xsd("string"), "The quick brown fox jumps over the lazy dog"),
            (Name("", "date"), _xsd("dateTime"), _WHEN),
            (Name("", "number"), _xsd("double"), 3.14159265),
            (SERIAL, _xsd("int"), serial),
        ],
    )


def answer(serial: int) -> EventList:
    return _envelope("answer", [(SERIAL, _xsd("int"), serial)])


def serial_of(events: EventSequence) -> int:
    """The sequence number in a call or an answer."""
    reader = Reader(events)
    while (event := reader.peek()) is not None:
        if event.kind is ELEMENT_START and event.name == SERIAL:
            reader.start()
            return int(reader.text())
        reader.advance()
    raise ValueError("no sequence number")
