"""Application classes travel as elements: the example of section 4.5, through XML and Xebu."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from lasthop_xml.xas.content import (
    MISSING,
    DecoderChain,
    EncoderChain,
    Source,
    expanded,
    with_values,
)
from lasthop_xml.xas.errors import MalformedEvents, UnknownType
from lasthop_xml.xas.events import TYPED_CONTENT, attribute, end, prefix, start, typed
from lasthop_xml.xas.names import XSD_NS, XSI_TYPE, Name
from lasthop_xml.xas.reader import Reader
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.transform import untyped
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.writer import TYPED_PREFIXES, Writer
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder

NS = "urn:people"
NAME, PERSON = Name(NS, "name"), Name(NS, "person")
STRING, DATE = Name(XSD_NS, "string"), Name(XSD_NS, "date")
NATION = Name("", "nation")


@dataclass
class FullName:
    first: str
    last: str


@dataclass
class Person:
    name: FullName
    nation: str
    born: date
    died: date | None = None


def local(name: str) -> Name:
    return Name("", name)


class NameCodec:
    def encode(self, type_: Name, value: Any, writer: Writer) -> bool:
        if type_ != NAME:
            return False
        writer.typed_element(local("first"), STRING, value.first)
        writer.typed_element(local("last"), STRING, value.last)
        return True

    def decode(self, type_: Name, source: Source) -> Any:
        if type_ != NAME:
            return MISSING
        return FullName(source.expect(local("first")), source.expect(local("last")))


class PersonCodec:
    def encode(self, type_: Name, value: Any, writer: Writer) -> bool:
        if type_ != PERSON:
            return False
        writer.event(attribute(NATION, value.nation))
        writer.typed_element(local("name"), NAME, value.name)
        writer.typed_element(local("born"), DATE, value.born)
        if value.died is not None:
            writer.typed_element(local("died"), DATE, value.died)
        return True

    def decode(self, type_: Name, source: Source) -> Any:
        if type_ != PERSON:
            return MISSING
        nation = source.attributes[NATION]
        name = source.expect(local("name"))
        born = source.expect(local("born"))
        died = source.accept(local("died"))
        return Person(name, nation, born, None if died is MISSING else died)


ENCODERS = EncoderChain(NameCodec(), PersonCodec())
DECODERS = DecoderChain(NameCodec(), PersonCodec())
WAGNER = Person(FullName("Richard", "Wagner"), "DE", date(1813, 5, 22), date(1883, 2, 13))
LIVING = Person(FullName("Kaija", "S"), "FI", date(1952, 10, 14))


def message(*people: Person) -> EventList:
    events = EventList()
    writer = Writer(events, encoder=ENCODERS)
    with writer.document(), writer.element(local("all"), prefixes={**TYPED_PREFIXES, "p": NS}):
        for person in people:
            writer.typed_element(local("one"), PERSON, person)
    return events


def values(events: EventList) -> list[Any]:
    reader = Reader(events)
    reader.advance()
    reader.start()
    source = Source(reader, DECODERS)
    found = []
    while (value := source.accept(local("one"))) is not MISSING:
        found.append(value)
    return found


def test_objects_come_back_from_xml() -> None:
    document = serialize_xml(message(WAGNER, LIVING))
    assert b'<born xsi:type="xsd:date">1813-05-22</born>' in document
    plain = parse_xml(document)
    assert values(plain) == [WAGNER, LIVING]
    assert values(EventList(typed_sequence(plain))) == [WAGNER, LIVING]
    pretty = document.replace(b"><", b">\n <!-- x --> <")
    assert values(parse_xml(pretty)) == [WAGNER, LIVING]


def test_objects_come_back_from_xebu() -> None:
    assert values(Decoder().decode(Encoder().encode(message(WAGNER, LIVING)))) == [WAGNER, LIVING]


def test_a_sequence_can_hold_the_objects_themselves() -> None:
    events = message(WAGNER, LIVING)
    held = EventList(with_values(events, DECODERS))
    assert [e.value for e in held if e.kind is TYPED_CONTENT] == [WAGNER, LIVING]
    assert EventList(expanded(held, ENCODERS)) == events
    primitive = EventList(with_values(parse_xml(b"<a><b>x</b></a>"), DECODERS))
    assert primitive == parse_xml(b"<a><b>x</b></a>")


def test_who_is_not_known_is_said() -> None:
    stranger = Name(NS, "stranger")
    root = local("a")
    events = [prefix(NS, "p"), start(root), attribute(XSI_TYPE, "p:stranger"), end(root)]
    source = Source(Reader(events), DECODERS)
    with pytest.raises(UnknownType, match="no decoder"):
        source.expect(root)
    with pytest.raises(UnknownType, match="no encoder"):
        list(expanded([start(root), typed(stranger, 1), end(root)], ENCODERS))
    writer = Writer(EventList(), encoder=ENCODERS)
    writer.start(root, prefixes={"p": NS})
    with pytest.raises(UnknownType, match="no encoder"):
        writer.typed(stranger, 1)
    with pytest.raises(UnknownType, match="declares no type"):
        Source(Reader([start(root), end(root)]), DECODERS).expect(root)
    with pytest.raises(MalformedEvents, match="another element"):
        Source(Reader([end(root)]), DECODERS).expect(root)
    assert repr(MISSING) == "MISSING"
    with pytest.raises(UnknownType):
        list(untyped([typed(stranger, 1)]))
