"""Lists, streams, cursors, writers and transformations agree on what a sequence says."""

from collections.abc import Iterator

import pytest

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    CONTENT,
    DOCUMENT_END,
    DOCUMENT_START,
    ELEMENT_START,
    Event,
    attribute,
    comment,
    content,
    end,
    instruction,
    prefix,
    start,
    typed,
)
from lasthop_xml.xas.names import XSD_NS, XSI_TYPE, Name
from lasthop_xml.xas.reader import Reader
from lasthop_xml.xas.sequence import EventList, EventSequence, EventStream
from lasthop_xml.xas.transform import (
    as_document,
    coalesced,
    transformed,
    untyped,
    without_comments,
)
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.writer import TYPED_PREFIXES, Writer
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import XmlSerializer, serialize_xml

PEOPLE = "http://example.org/people"
INT = Name(XSD_NS, "int")
STRING = Name(XSD_NS, "string")


def person(local: str) -> Name:
    return Name(PEOPLE, local)


def test_figure_4_1_becomes_its_sequence() -> None:
    document = (
        b'<composers xmlns:p="http://example.org/people"><p:person p:nationality="DE"><p:name>'
        b"<p:first>Richard</p:first><p:last>Wagner</p:last></p:name></p:person></composers>"
    )
    assert parse_xml(document) == [
        DOCUMENT_START,
        prefix(PEOPLE, "p"),
        start(Name("", "composers")),
        start(person("person")),
        attribute(person("nationality"), "DE"),
        start(person("name")),
        start(person("first")),
        content("Richard"),
        end(person("first")),
        start(person("last")),
        content("Wagner"),
        end(person("last")),
        end(person("name")),
        end(person("person")),
        end(Name("", "composers")),
        DOCUMENT_END,
    ]
    assert serialize_xml(parse_xml(document)) == document


def test_events_are_values() -> None:
    event = attribute(Name("urn:x", "k"), "v")
    assert event == attribute(Name("urn:x", "k"), "v")
    assert hash(event) == hash(attribute(Name("urn:x", "k"), "v"))
    assert event != attribute(Name("", "k"), "v")
    assert repr(event) == "ATTRIBUTE({urn:x}k, v)"
    assert instruction("go").value == "go"
    with pytest.raises(AttributeError):
        event.value = "w"  # type: ignore[misc]


def test_a_stream_can_be_looked_at_again_until_it_is_released() -> None:
    events = parse_xml(b"<a><b/><c/></a>")
    stream = EventStream(iter(events))
    assert stream.at(3) == events[3]
    assert stream.at(0) == events[0]
    stream.release(3)
    assert stream.at(3) == events[3]
    with pytest.raises(LookupError):
        stream.at(0)
    assert stream.at(99) is None
    assert list(EventStream(events)) == events


def test_texts_in_a_row_are_one_text() -> None:
    events = [content("a"), content("b", same_text=True), content(""), comment("c"), content("")]
    assert list(coalesced(events)) == [content("ab"), comment("c")]
    assert list(coalesced([content("a")])) == [content("a")]


def test_transformations_chain_and_wait_until_they_are_asked() -> None:
    events = parse_xml(b"<a><!--x-->1<!--y-->2</a>")
    steps = transformed(events, without_comments, coalesced)
    assert [event.value for event in steps if event.kind is CONTENT] == ["12"]
    asked = []

    def doubled(source: EventSequence) -> Iterator[Event]:
        for event in source:
            asked.append(event)
            yield from (event, event) if event.kind is CONTENT else (event,)

    stream = transformed(events, doubled)
    assert asked == []
    assert serialize_xml(stream) == b"<a><!--x-->11<!--y-->22</a>"


TYPED = (
    b'<r xmlns:xsd="http://www.w3.org/2001/XMLSchema" '
    b'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">%s</r>'
)


@pytest.mark.parametrize(
    "inner, values",
    [
        (b'<a xsi:type="xsd:int">5</a>', [5]),
        (b'<a xsi:type="xsd:int" k="v">5</a><a>6</a>', [5]),
        (b'<a xsi:type="xsd:int">05</a>', []),
        (b'<a xsi:type="xsd:int"> 5</a>', []),
        (b'<a xsi:type="xsd:int">x</a>', []),
        (b'<a xsi:type="xsd:int">5<b/></a>', []),
        (b'<a xsi:type="xsd:int">5<!--x--></a>', []),
        (b'<a xsi:type="xsd:string"></a>', []),
        (b'<a xsi:type="xsd:nothing">5</a>', []),
        (b'<a xsi:type="no:int">5</a>', []),
        (b'<a xmlns:xsd="urn:other" xsi:type="xsd:int">5</a><b xsi:type="xsd:int">6</b>', [6]),
        (b'<a xmlns:x="http://www.w3.org/2001/XMLSchema" xsi:type="x:double">8.0</a>', [8.0]),
        (b'<a xsi:type="xsd:double">8.0E0</a>', []),
    ],
)
def test_text_becomes_a_value_only_where_nothing_is_lost(
    inner: bytes, values: list[object]
) -> None:
    document = TYPED % inner
    plain = parse_xml(document)
    events = list(typed_sequence(plain))
    assert [event.value for event in events if event.kind.name == "TYPED_CONTENT"] == values
    assert list(untyped(events)) == plain
    written = serialize_xml(events)
    assert parse_xml(written) == plain


def test_a_cursor_reads_elements_attributes_and_text() -> None:
    document = b'<a xmlns="urn:a" k="1"><!--x--><b>one<?go?> two</b><c><d/></c> <e/></a>'
    reader = Reader(parse_xml(document))
    reader.expect(DOCUMENT_START.kind)
    assert reader.at_start(Name("urn:a", "a"))
    assert not reader.at_start(Name("", "a"))
    assert reader.start() == {Name("", "k"): "1"}
    assert reader.scope.resolve("b") == Name("urn:a", "b")
    reader.skip_ignorable()
    reader.start(Name("urn:a", "b"))
    assert reader.depth == 2
    assert reader.text() == "one two"
    reader.end()
    fragment = reader.element()
    assert serialize_xml(fragment) == b'<ns0:c xmlns:ns0="urn:a"><ns0:d/></ns0:c>'
    reader.skip_ignorable()
    reader.skip()
    reader.end(Name("urn:a", "a"))
    assert reader.depth == 0
    assert reader.advance() == DOCUMENT_END
    assert reader.advance() is None
    assert reader.peek() is None


def test_a_cursor_stays_where_it_was_when_something_else_comes() -> None:
    reader = Reader(iter(parse_xml(b"<a>x</a>")))
    for attempt in (reader.start, reader.end, reader.element, reader.value):
        with pytest.raises(MalformedEvents):
            attempt()
    assert reader.position == 0
    reader.advance()
    with pytest.raises(MalformedEvents, match="another element"):
        reader.start(Name("", "b"))
    with pytest.raises(MalformedEvents, match="another event"):
        reader.expect(CONTENT)
    reader.start()
    with pytest.raises(MalformedEvents, match="the end of an element was expected"):
        reader.end()
    reader.release()
    assert reader.text() == "x"
    with pytest.raises(MalformedEvents):
        Reader([end(Name("", "a"))]).advance()
    with pytest.raises(MalformedEvents, match="inside an element"):
        Reader([start(Name("", "a"))]).element()


def test_a_cursor_reads_values() -> None:
    reader = Reader([typed(INT, 5), typed(STRING, "x"), typed(INT, 6)])
    assert reader.value(INT) == 5
    with pytest.raises(MalformedEvents):
        reader.value(INT)
    assert reader.text() == "x6"


@pytest.mark.parametrize("into_xml", [True, False])
def test_a_writer_makes_the_same_document_in_every_sink(into_xml: bool) -> None:
    serializer, events = XmlSerializer(), EventList()
    writer = Writer(serializer if into_xml else events)
    with writer.document(), writer.element(person("person"), prefixes={"p": PEOPLE}):
        writer.text_element(person("work"), "Composer")
        writer.text_element(person("none"), "")
        with writer.element(person("born"), {Name("", "in"): "Leipzig"}):
            writer.event(content("1813"))
        writer.events([comment("more")])
    data = serializer.finish() if into_xml else serialize_xml(events)
    assert data == (
        b'<p:person xmlns:p="http://example.org/people"><p:work>Composer</p:work><p:none/>'
        b'<p:born in="Leipzig">1813</p:born><!--more--></p:person>'
    )


def test_a_typed_element_declares_its_type() -> None:
    events = EventList()
    writer = Writer(events)
    with writer.element(Name("", "a"), prefixes=TYPED_PREFIXES):
        writer.typed_element(Name("", "b"), INT, 5)
    assert [event for event in events if event.name in {INT, XSI_TYPE}] == [
        attribute(XSI_TYPE, "xsd:int"),
        typed(INT, 5),
    ]
    with pytest.raises(MalformedEvents, match="no prefix"):
        Writer(events).typed(INT, 5)
    with pytest.raises(MalformedEvents, match="no element is open"):
        Writer(events).end()


def test_a_fragment_becomes_a_document() -> None:
    fragment: list[Event] = [start(Name("", "a")), end(Name("", "a"))]
    assert list(as_document(fragment)) == parse_xml(b"<a/>")
    assert parse_xml(b"<a/>")[1].kind is ELEMENT_START
