"""SAX, ElementTree and minidom on one side, events on the other; formats by their MIME type."""

import io
import xml.sax
from xml.dom import minidom
from xml.etree import ElementTree
from xml.sax.handler import feature_namespaces, property_lexical_handler
from xml.sax.saxutils import XMLGenerator

import pytest

from lasthop_xml.formats import FORMATS, format_for
from lasthop_xml.xas.dom import from_dom, to_dom
from lasthop_xml.xas.errors import MalformedEvents, UnknownType
from lasthop_xml.xas.etree import from_etree, to_etree
from lasthop_xml.xas.events import (
    COMMENT,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    Event,
    comment,
    content,
    end,
    entity,
    start,
)
from lasthop_xml.xas.names import XSD_NS, XSI_NS, Name
from lasthop_xml.xas.sax import SaxToXas, to_sax
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.transform import coalesced, untyped
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from tests.xas.documents import Documents

A = Name("", "a")


def generated(count: int) -> list[EventList]:
    documents = Documents(21)
    return [documents.next() for _ in range(count)]


def test_what_sax_tells_is_what_we_read() -> None:
    for events in generated(100):
        data = serialize_xml(events)
        handler = SaxToXas()
        reader = xml.sax.make_parser()
        reader.setFeature(feature_namespaces, True)
        reader.setContentHandler(handler)
        reader.setProperty(property_lexical_handler, handler)
        reader.parse(io.BytesIO(data))
        assert list(coalesced(handler.events)) == parse_xml(data)


def test_what_we_tell_sax_comes_back() -> None:
    for events in generated(100):
        handler = SaxToXas()
        to_sax(events, handler, lexical_handler=handler)
        assert handler.events == list(untyped(events))
    out = io.StringIO()
    to_sax(parse_xml(b"<p:a xmlns:p='urn:p' k='v'>x&lt;</p:a>"), XMLGenerator(out))
    assert out.getvalue().endswith('<p:a xmlns:p="urn:p" k="v">x&lt;</p:a>')
    handler = SaxToXas()
    to_sax([start(A), entity("e"), end(A)], handler)
    assert handler.events == [start(A), entity("e"), end(A)]
    with pytest.raises(MalformedEvents):
        to_sax([end(A)], handler)


def without(events: EventSequence, *kinds: object) -> list[Event]:
    return [event for event in events if event.kind not in kinds]


def test_an_element_tree_is_the_document_without_its_prefixes() -> None:
    for events in generated(100):
        tree = to_etree(events)
        plain = list(untyped(events))
        # What stands outside of the root has no place either.
        body = without(plain, PREFIX_MAPPING, COMMENT, PROCESSING_INSTRUCTION)
        assert from_etree(tree) == body
        prefixes = {"xsd": XSD_NS, "xsi": XSI_NS}
        typed = EventList(typed_sequence(from_etree(tree, prefixes=prefixes)))
        assert without(typed, PREFIX_MAPPING) == without(
            events, PREFIX_MAPPING, COMMENT, PROCESSING_INSTRUCTION
        )


def test_element_tree_and_we_read_the_same() -> None:
    document = b"<a k='v'>x<!--c-->y<b><?go now?>z</b>t<c/>u</a>"
    assert from_etree(to_etree(parse_xml(document))) == parse_xml(document)
    builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
    theirs = ElementTree.fromstring(document, ElementTree.XMLParser(target=builder))
    assert from_etree(theirs) == parse_xml(document)
    assert ElementTree.tostring(to_etree(parse_xml(document))) == ElementTree.tostring(theirs)
    with pytest.raises(MalformedEvents):
        to_etree([start(A), entity("e"), end(A)])
    with pytest.raises(MalformedEvents):
        to_etree([start(A)])


def test_a_dom_is_the_whole_document() -> None:
    for events in generated(100):
        plain = list(untyped(events))
        assert from_dom(to_dom(events)) == plain
        data = serialize_xml(events)
        assert list(coalesced(from_dom(minidom.parseString(data)))) == parse_xml(data)


@pytest.mark.parametrize(
    "events",
    [
        [start(A), end(A), start(A), end(A)],
        [content("x")],
        [start(A)],
        [end(A)],
        [start(A), entity("e"), end(A)],
        [start(Name("urn:p", "a")), end(Name("urn:p", "a"))],
    ],
)
def test_what_a_dom_cannot_hold_is_refused(events: list[Event]) -> None:
    with pytest.raises(MalformedEvents):
        to_dom(events)


def test_deep_trees_do_not_exhaust_the_stack() -> None:
    deep = [*[start(A)] * 3000, comment("x"), *[end(A)] * 3000]
    assert from_etree(to_etree(deep))[1:-1] == deep
    assert from_dom(to_dom(deep))[1:-1] == deep


@pytest.mark.parametrize("mime_type", FORMATS)
def test_every_format_carries_every_document(mime_type: str) -> None:
    chosen = format_for(f"{mime_type.upper()}; charset=utf-8")
    encoder, decoder = chosen.encoder(), chosen.decoder()
    for events in generated(30):
        plain = list(untyped(events))
        assert decoder.decode(encoder.encode(plain)) == plain


def test_a_format_that_nobody_knows_is_said() -> None:
    with pytest.raises(UnknownType):
        format_for("application/json")
