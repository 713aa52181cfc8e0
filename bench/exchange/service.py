"""The calls and answers that are exchanged: a call has a string, a date, a number and its sequence
number; the answer has the sequence number. Both are SOAP 1.2, as events, so that every format
writes the same content."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, TypeAlias

from lasthop.device.exchange.xml import DEFAULT_ACCEPT, Xml
from lasthop.device.exchange.xml_message import XmlMessage
from lasthop_xml.weft.profile import Profile
from lasthop_xml.weft.snapshot import train
from lasthop_xml.xas.events import ELEMENT_START
from lasthop_xml.xas.names import XSD_NS, Name
from lasthop_xml.xas.reader import Reader
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.writer import TYPED_PREFIXES, Writer
from lasthop_xml.xas.xmlparse import parse_xml

SOAP: Final = "http://www.w3.org/2003/05/soap-envelope"
FLOOD: Final = "http://lasthop.example/ns/flood"
SERIAL: Final = Name("", "serial")
SERVICE: Final = "flood"
OPERATION: Final = "call"
"""The name of the operation at a device that has the service."""

Fields: TypeAlias = list[tuple[Name, Name, object]]
"""The name, type and value of each element."""

_PREFIXES: Final = {"soap": SOAP, "f": FLOOD, **TYPED_PREFIXES}
_WHEN: Final = datetime(2006, 3, 1, 9, 30, tzinfo=UTC)


def _xsd(local: str) -> Name:
    return Name(XSD_NS, local)


def _write(writer: Writer, fields: Fields) -> None:
    for name, type_, value in fields:
        writer.typed_element(name, type_, value)


def _envelope(operation: str, fields: Fields) -> EventList:
    events = EventList()
    writer = Writer(events)
    with (
        writer.document(),
        writer.element(Name(SOAP, "Envelope"), prefixes=_PREFIXES),
        writer.element(Name(SOAP, "Body")),
        writer.element(Name(FLOOD, operation)),
    ):
        _write(writer, fields)
    return events


def _message(operation: str, fields: Fields) -> XmlMessage:
    """Return an operation's fields as a message for the SDK, which writes the envelope itself."""
    events = EventList()
    writer = Writer(events)
    with writer.element(Name(FLOOD, operation), prefixes={"f": FLOOD, **TYPED_PREFIXES}):
        _write(writer, fields)
    return XmlMessage(events)


def _called(serial: int) -> Fields:
    return [
        (Name("", "text"), _xsd("string"), "The quick brown fox jumps over the lazy dog"),
        (Name("", "date"), _xsd("dateTime"), _WHEN),
        (Name("", "number"), _xsd("double"), 3.14159265),
        (SERIAL, _xsd("int"), serial),
    ]


def _answered(serial: int) -> Fields:
    return [(SERIAL, _xsd("int"), serial)]


def call(serial: int) -> EventList:
    return _envelope("call", _called(serial))


def answer(serial: int) -> EventList:
    return _envelope("answer", _answered(serial))


def call_message(serial: int) -> XmlMessage:
    """Return a call as an application passes it to the SDK."""
    return _message("call", _called(serial))


def answer_message(serial: int) -> XmlMessage:
    """Return an answer as an application passes it to the SDK."""
    return _message("answer", _answered(serial))


def binding(coding: str, *, profiled: bool = False, accept: Iterable[str] = DEFAULT_ACCEPT) -> Xml:
    """Return a binding that sends one coding to receivers that it does not know. With a profile
    both ends know two other calls and answers beforehand."""
    profile = _trained() if profiled else None
    return Xml(assume=[coding], accept=accept, profile=profile)


def _trained() -> Profile:
    samples = [make(serial) for serial in (1000, 1001) for make in (call_message, answer_message)]
    trained = train(parse_xml(Xml().encode(sample, "").body) for sample in samples)
    return Profile(trained.data)


def serial_of(events: EventSequence) -> int:
    """Return the sequence number in a call or an answer."""
    reader = Reader(events)
    while (event := reader.peek()) is not None:
        if event.kind is ELEMENT_START and event.name == SERIAL:
            reader.start()
            return int(reader.text())
        reader.advance()
    raise ValueError("no sequence number")
