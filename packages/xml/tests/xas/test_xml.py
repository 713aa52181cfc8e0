"""What XML says comes out as events, and events as XML that says the same."""

from contextlib import suppress

import pytest

from lasthop_xml.errors import XmlError
from lasthop_xml.xas.errors import MalformedEvents, MalformedXml, XmlTooLarge
from lasthop_xml.xas.events import (
    DOCUMENT_END,
    DOCUMENT_START,
    Event,
    Kind,
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
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import XML_NS, XSD_NS, Name
from lasthop_xml.xas.transform import untyped
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import XmlParser, parse_xml, stream_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from tests.xas.documents import Documents, exact

A = Name("", "a")
P = "urn:p"


def inside(data: bytes) -> list[Event]:
    events = parse_xml(data)
    assert events[0] == DOCUMENT_START
    assert events[-1] == DOCUMENT_END
    return events[1:-1]


def test_every_kind_of_event_is_read() -> None:
    document = (
        b"<?xml version='1.0'?><!DOCTYPE p:a SYSTEM 'x.dtd'><!--c--><?go now?>"
        b"<p:a xmlns:p='urn:p' p:k='v' xml:lang='fi'>t<![CDATA[<&]]>&lt;&unknown;<b/></p:a>"
    )
    assert inside(document) == [
        comment("c"),
        instruction("go", "now"),
        prefix(P, "p"),
        start(Name(P, "a")),
        attribute(Name(P, "k"), "v"),
        attribute(Name(XML_NS, "lang"), "fi"),
        content("t<&<"),
        entity("unknown"),
        start(Name("", "b")),
        end(Name("", "b")),
        end(Name(P, "a")),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "cp1252"])
def test_encodings_are_understood(encoding: str) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?><a>ä</a>"
    assert inside(text.encode(encoding))[1] == content("ä")


@pytest.mark.parametrize(
    "document, detail",
    [
        (b"", "no element found"),
        (b"<a>", "no element found"),
        (b"<a></b>", "mismatched tag"),
        (b"<p:a/>", "unbound prefix"),
        (b"<a>&unknown;</a>", "undefined entity"),
        (b"<!DOCTYPE a [<!ENTITY e 'x'>]><a/>", "entity declarations are refused"),
        (b"<!DOCTYPE a [<!ENTITY % e 'x'>]><a/>", "entity declarations are refused"),
        (b"<!DOCTYPE a SYSTEM 'x'><a k='&e;'/>", "an attribute refers to an unknown entity"),
        (
            b"<!DOCTYPE a SYSTEM 'x'><a k='>' l=\"&e;\"/>",
            "an attribute refers to an unknown entity",
        ),
        (b"<?xml version='1.0' encoding='klingon'?><a/>", "the encoding is not supported"),
    ],
)
def test_what_is_refused_is_said(document: bytes, detail: str) -> None:
    with pytest.raises(MalformedXml) as caught:
        parse_xml(document)
    assert caught.value.detail == detail
    parser = XmlParser()
    with suppress(MalformedXml):
        parser.feed(document)
        parser.close()
    with pytest.raises(MalformedXml, match="the parser is closed"):
        parser.feed(b"")


def test_an_attribute_may_hold_references_that_are_always_known() -> None:
    document = b"<!DOCTYPE a SYSTEM 'x'><a k='&amp;&#65;&quot;'>&e;</a>"
    assert inside(document)[1] == attribute(Name("", "k"), '&A"')


def test_a_long_document_with_references_takes_no_longer_than_others() -> None:
    document = b"<!DOCTYPE a SYSTEM 'x'><a>" + b"<b k='1'>&e;</b>" * 20_000 + b"</a>"
    assert len(parse_xml(document)) == 4 * 20_000 + 4
    tag = b"<b k='" + b"x" * 50_000 + b"&e;'/>"
    with pytest.raises(MalformedXml, match="unknown entity"):
        parse_xml(b"<!DOCTYPE a SYSTEM 'x'><a>" + tag + b"</a>")


def test_an_error_says_where() -> None:
    with pytest.raises(MalformedXml) as caught:
        parse_xml(b"<a>\n  <b></c></a>")
    assert caught.value.fields == {"line": 2, "column": 8}


@pytest.mark.parametrize(
    "document, limits",
    [
        (b"<a>" + b"x" * 100 + b"</a>", Limits(size=100)),
        (b"<a>" * 6 + b"</a>" * 6, Limits(depth=5)),
        (b"<a k='1' l='2' m='3'/>", Limits(attributes=2)),
        (b"<a xmlns:k='1' xmlns:l='2' m='3'/>", Limits(attributes=2)),
        (b"<a>" + b"<b/>" * 50 + b"</a>", Limits(events=100)),
        (b"<" + b"a" * 101 + b"/>", Limits(name=100)),
        (b"<a xmlns:x='" + b"a" * 101 + b"'/>", Limits(name=100)),
        (
            b"<!DOCTYPE a [<!ATTLIST b c CDATA '" + b"x" * 100 + b"'>]><a>" + b"<b/>" * 9 + b"</a>",
            Limits(size=400),
        ),
    ],
)
def test_limits_hold(document: bytes, limits: Limits) -> None:
    with pytest.raises(XmlTooLarge):
        parse_xml(document, limits=limits)
    parse_xml(document)


def test_a_document_may_arrive_in_any_pieces() -> None:
    for seed in range(20):
        events = Documents(seed).next()
        data = serialize_xml(events)
        whole = parse_xml(data)
        parser = XmlParser()
        single = [event for byte in data for event in parser.feed(bytes((byte,)))] + parser.close()
        assert single == whole
        assert list(stream_xml([data[:40], data[40:]])) == whole


def test_more_after_the_end_is_an_error() -> None:
    with pytest.raises(MalformedXml, match="junk after document element"):
        parse_xml(b"<a/>x")


def test_a_stream_reads_no_more_than_it_is_asked_for() -> None:
    read = []

    def pieces() -> object:
        for piece in (b"<a>", b"<b/>", b"<c/>", b"</a>"):
            read.append(piece)
            yield piece

    stream = stream_xml(pieces())  # type: ignore[arg-type]
    assert read == []
    assert stream.at(1) == start(A)
    assert read == [b"<a>"]
    assert len(list(stream)) == 8


def test_generated_documents_survive_xml_exactly() -> None:
    documents = Documents(7)
    for _ in range(300):
        events = documents.next()
        data = serialize_xml(events)
        plain = parse_xml(data)
        assert plain == list(untyped(events))
        assert exact(typed_sequence(plain)) == exact(events)
        assert serialize_xml(plain) == data


def test_prefixes_are_declared_where_they_are_missing() -> None:
    deep = Name("urn:q", "b")
    events = [
        start(Name(P, "a")),
        attribute(Name("urn:q", "k"), "1"),
        attribute(Name("urn:q", "l"), "2"),
        start(deep),
        end(deep),
        end(Name(P, "a")),
    ]
    data = serialize_xml(events)
    assert data == (
        b'<ns0:a xmlns:ns0="urn:p" xmlns:ns1="urn:q" ns1:k="1" ns1:l="2"><ns1:b/></ns0:a>'
    )
    assert [event for event in inside(data) if event.kind is not Kind.PREFIX_MAPPING] == events


def test_the_default_namespace_is_left_where_a_name_has_none() -> None:
    events = [prefix(P, ""), start(Name(P, "a")), start(A), end(A), end(Name(P, "a"))]
    assert serialize_xml(events) == b'<a xmlns="urn:p"><a xmlns=""/></a>'
    outside = [prefix(P, ""), start(A), end(A)]
    with pytest.raises(MalformedEvents):
        serialize_xml(outside)


def test_an_attribute_never_takes_the_default_namespace() -> None:
    events = [prefix(P, "p"), prefix(P, ""), start(Name(P, "a")), attribute(Name(P, "k"), "v")]
    assert b' p:k="v"' in serialize_xml([*events, end(Name(P, "a"))])


def test_a_declaration_can_be_asked_for() -> None:
    written = serialize_xml([start(A), end(A)], declaration=True)
    assert written == b'<?xml version="1.0" encoding="UTF-8"?>\n<a/>'


@pytest.mark.parametrize(
    "events",
    [
        [content("x")],
        [start(A)],
        [end(A)],
        [start(A), end(Name("", "b"))],
        [attribute(A, "x")],
        [start(A), content("x"), attribute(A, "x"), end(A)],
        [start(A), attribute(A, "x"), attribute(A, "y"), end(A)],
        [start(A), attribute(Name("", "xmlns"), "y"), end(A)],
        [start(Name("", "a b")), end(Name("", "a b"))],
        [start(Name("", "a><b")), end(Name("", "a><b"))],
        [start(Name("urn:\x00", "a")), end(Name("urn:\x00", "a"))],
        [prefix(P, "x y"), start(A), end(A)],
        [prefix("", "x"), start(A), end(A)],
        [prefix(P, "xml"), start(A), end(A)],
        [prefix(P, "p"), prefix("urn:q", "p"), start(A), end(A)],
        [prefix(P, "p")],
        [prefix(P, "p"), comment("x")],
        [start(A), prefix(P, "p"), end(A)],
        [start(A), content("\x00"), end(A)],
        [start(A), content("\ud800"), end(A)],
        [start(A), attribute(A, "\uffff"), end(A)],
        [start(A), typed(Name(XSD_NS, "int"), "x"), end(A)],
        [start(A), typed(A, 1), end(A)],
        [comment("a--b")],
        [comment("a-")],
        [comment("a\r")],
        [instruction("xml", "x")],
        [instruction("a b?>")],
        [instruction("a", "?>")],
        [start(A), entity("a;b"), end(A)],
        [DOCUMENT_START, DOCUMENT_END],
        [DOCUMENT_START, start(A), end(A), start(A), end(A), DOCUMENT_END],
        [DOCUMENT_START, start(A), DOCUMENT_END, end(A)],
    ],
)
def test_nothing_is_written_that_is_not_xml(events: list[Event]) -> None:
    with pytest.raises(XmlError):
        serialize_xml(events)


def test_the_same_attribute_may_stand_in_many_elements() -> None:
    key, other = Name("", "k"), Name("", "l")
    one = [start(A), attribute(key, "1"), attribute(other, "2"), end(A)]
    assert serialize_xml([*one, *one]) == b'<a k="1" l="2"/>' * 2
