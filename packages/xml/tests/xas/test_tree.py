"""A sequence as a tree, its fragments, and the one form that all equal fragments share."""

from xml.etree import ElementTree

import pytest

from lasthop_xml.xas.canonical import canonical
from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import attribute, comment, content, end, instruction, start
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.tree import Tree
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from tests.xas.documents import Documents

DOCUMENT = (
    b'<r xmlns="urn:r" xmlns:q="urn:q"><a k="1">x<b/>y</a>'
    b'<q:c xmlns:z="urn:z"><b q:l="2"/></q:c></r>'
)


def name(local: str) -> Name:
    return Name("urn:r", local)


def test_a_tree_is_walked_by_name() -> None:
    root = Tree(parse_xml(DOCUMENT)).root
    assert root.name == name("r")
    assert [child.name.local for child in root] == ["a", "c"]
    assert [below.name.local for below in root.descendants()] == ["a", "b", "c", "b"]
    found = root.find(Name("urn:q", "c"), name("b"))
    assert found is not None
    assert found.attributes == {Name("urn:q", "l"): "2"}
    assert found.parent == root.find(Name("urn:q", "c"))
    assert found.parent is not None
    assert found.parent.parent == root
    assert root.parent is None
    assert found.scope.resolve("z:x") == Name("urn:z", "x")
    assert root.scope.resolve("z:x") is None
    assert root.find(name("nothing")) is None
    assert root.text == "xy"
    assert len({found, root, root}) == 2
    assert "b" in repr(found)


def test_a_fragment_stands_alone() -> None:
    root = Tree(parse_xml(DOCUMENT)).root
    found = root.find(Name("urn:q", "c"), name("b"))
    assert found is not None
    data = serialize_xml(found.fragment())
    alone = Tree(parse_xml(data)).root
    assert alone.name == found.name
    assert alone.attributes == found.attributes
    assert alone.scope.prefixes == found.scope.prefixes
    assert alone.canonical() == found.canonical()


def test_only_what_is_nested_is_a_tree() -> None:
    for events in ([start(name("a"))], [end(name("a"))], [start(name("a")), end(name("b"))]):
        with pytest.raises(MalformedEvents):
            Tree(events)
        with pytest.raises(MalformedEvents):
            canonical(events[:1])
    with pytest.raises(MalformedEvents):
        _ = Tree([]).root


@pytest.mark.parametrize(
    "one, other",
    [
        (b"<a x='1' y='2'></a>", b'<a y="2"   x="1"/>'),
        (b"<p:a xmlns:p='urn:x'/>", b"<a xmlns='urn:x'/>"),
        (b"<p:a xmlns:p='urn:x' xmlns:unused='urn:u'/>", b"<q:a xmlns:q='urn:x'/>"),
        (b"<a><![CDATA[<]]>x</a>", b"<a>&#60;x</a>"),
        (b"<a><!--c-->x</a>", b"<a>x</a>"),
    ],
)
def test_what_means_the_same_looks_the_same(one: bytes, other: bytes) -> None:
    assert canonical(parse_xml(one)) == canonical(parse_xml(other))


def test_types_are_names_whatever_their_prefix() -> None:
    form = (
        b"<a xmlns:%b='http://www.w3.org/2001/XMLSchema' "
        b"xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:type='%b:int'>5</a>"
    )
    assert canonical(parse_xml(form % (b"x", b"x"))) == canonical(parse_xml(form % (b"y", b"y")))


def test_comments_are_kept_when_they_are_asked_for() -> None:
    root = Name("", "a")
    events = [comment("1"), start(root), comment("2"), end(root), comment("3"), instruction("go")]
    assert canonical(events, comments=True) == b"<!--1-->\n<a><!--2--></a>\n<!--3-->\n<?go?>"
    assert canonical(events) == b"<a></a>\n<?go?>"


def test_our_form_is_canonical_xml_2() -> None:
    """Python's own implementation is the peer, which is wrong about names without a namespace."""
    documents = Documents(11, all_in_namespaces=True)
    for _ in range(150):
        data = serialize_xml(documents.next())
        theirs = ElementTree.canonicalize(
            data.decode(),
            rewrite_prefixes=True,
            qname_aware_attrs=["{http://www.w3.org/2001/XMLSchema-instance}type"],
        )
        assert canonical(parse_xml(data)).decode() == theirs


def test_the_form_survives_xebu_and_types() -> None:
    documents = Documents(12)
    encoder, decoder = Encoder(), Decoder()
    for _ in range(50):
        plain = parse_xml(serialize_xml(documents.next()))
        events = list(typed_sequence(plain))
        assert canonical(decoder.decode(encoder.encode(events))) == canonical(plain)


def test_a_text_in_pieces_is_one_text() -> None:
    a = Name("", "a")
    whole = [start(a), attribute(a, "x"), content("ab"), end(a)]
    pieces = [*whole[:2], content("a"), content("b", same_text=True), end(a)]
    assert canonical(whole) == canonical(pieces)
