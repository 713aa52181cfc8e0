"""The corpus: what is XML comes through every codec, what is not is refused, and others agree."""

from io import BytesIO
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import pytest
from lxml import etree

from lasthop_xml.errors import XmlError
from lasthop_xml.formats import FORMATS
from lasthop_xml.xas.errors import MalformedXml
from lasthop_xml.xas.transform import coalesced, untyped
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml, stream_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from tests.xas.conformance import MALFORMED, REFUSED, WELL_FORMED

GOOD = [(kind, name) for kind, cases in WELL_FORMED.items() for name in cases]
BAD = [(kind, name) for kind, cases in MALFORMED.items() for name in cases]
LXML = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)


def canonical(document: bytes) -> str:
    """The opinion of the standard library on what a document says."""
    return ElementTree.canonicalize(
        from_file=BytesIO(document), with_comments=True, rewrite_prefixes=True
    )


def shape(element: Any) -> Any:
    """What libxml2 makes of a document, without prefixes."""
    return (
        str(element.tag),
        sorted(element.attrib.items()),
        element.text or "",
        element.tail or "",
        [shape(child) for child in element],
    )


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("kind, name", GOOD)
def test_what_is_xml_comes_through(kind: str, name: str, format_: str) -> None:
    document = WELL_FORMED[kind][name]
    codec = FORMATS[format_]
    encoded = codec.encoder().encode(typed_sequence(parse_xml(document)))
    decoded = serialize_xml(codec.decoder().decode(encoded))
    assert canonical(decoded) == canonical(document)
    assert list(coalesced(parse_xml(decoded))) == list(coalesced(parse_xml(document)))


@pytest.mark.parametrize("kind, name", GOOD)
def test_typed_sequences_lose_nothing_of_it(kind: str, name: str) -> None:
    events = parse_xml(WELL_FORMED[kind][name])
    typed = list(typed_sequence(events))
    assert list(untyped(typed)) == events
    assert parse_xml(serialize_xml(typed)) == list(coalesced(events))


@pytest.mark.parametrize("kind, name", GOOD)
def test_libxml2_reads_the_same(kind: str, name: str) -> None:
    document = WELL_FORMED[kind][name]
    if (kind, name) == ("namespaces", "beyond ascii"):
        with pytest.raises(etree.XMLSyntaxError, match="not a valid URI"):
            etree.fromstring(document, LXML)
        return
    # libxml2 fills in declared attributes only when it is asked to.
    parser = etree.XMLParser(attribute_defaults=True) if name == "defaults" else LXML
    written = serialize_xml(parse_xml(document))
    theirs, ours = (etree.fromstring(each, parser) for each in (document, written))
    assert shape(ours) == shape(theirs)


@pytest.mark.parametrize("kind, name", BAD)
def test_what_is_not_xml_is_refused_with_the_reason(kind: str, name: str) -> None:
    document, detail = MALFORMED[kind][name]
    with pytest.raises(MalformedXml) as caught:
        parse_xml(document)
    assert caught.value.detail == detail
    parser = expat.ParserCreate(namespace_separator="\x01")
    with pytest.raises(expat.ExpatError) as theirs:
        parser.Parse(document, True)
    place = {"line": theirs.value.lineno, "column": theirs.value.offset + 1}
    assert caught.value.fields == place
    with pytest.raises(etree.XMLSyntaxError):
        etree.fromstring(document, LXML)


@pytest.mark.parametrize("kind, name", BAD)
def test_pieces_make_no_difference(kind: str, name: str) -> None:
    document, detail = MALFORMED[kind][name]
    single = (document[at : at + 1] for at in range(len(document)))
    with pytest.raises(MalformedXml) as caught:
        list(stream_xml(single))
    assert caught.value.detail == detail


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_too_much_for_us_is_named(name: str) -> None:
    document, detail = REFUSED[name]
    with pytest.raises(XmlError) as caught:
        parse_xml(document)
    assert caught.value.detail == detail
