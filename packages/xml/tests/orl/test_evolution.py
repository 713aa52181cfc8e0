"""What may change in a description while older and newer ends talk to each other (docs/orl.md)."""

from types import ModuleType
from typing import Any

import pytest

from lasthop_xml.errors import XmlError
from lasthop_xml.orl.documents import from_document, to_document
from lasthop_xml.xas.content import DecoderChain, EncoderChain
from lasthop_xml.xas.errors import InvalidValue, MalformedEvents, UnknownType, XmlTooLarge
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from tests.orl.modules import ROOT, codec, load, read, written

OLD = "type item { string name  int count  string? note  string* tag }"


def carried(source: str, reader: str, **fields: Any) -> Any:
    """An item written by one version and read by another, through XML and through Xebu."""
    writing, reading = load(source, "writer"), load(reader, "reader")
    events = written(writing, writing.ITEM_TYPE, writing.Item(**fields))
    forms = [parse_xml(serialize_xml(events)), Decoder().decode(Encoder().encode(events))]
    first, second = [read(reading, form, reading.Item) for form in forms]
    assert first == second
    return first


@pytest.mark.parametrize(
    "new, fields",
    [
        # added, of any kind, for old readers
        ("type item { string name  int count  string? note  string* tag  date? due }", {}),
        ("type item { boolean urgent  string name  int count }", {"urgent": True}),
        (
            "type part { int size } type item { string name  part* part  int count }",
            {},
        ),
        # optional and repeated ones removed
        ("type item { string name  int count }", {}),
        # another order
        ("type item { string* tag  int count  string? note  string name }", {"tag": ["a", "b"]}),
        # once becomes optional or repeated, while it is sent once
        ("type item { string? name  int* count }", {"count": [3]}),
        # a wider number, while values fit
        ("type item { string name  long count }", {}),
    ],
)
def test_old_readers_understand_new_writers(new: str, fields: dict[str, Any]) -> None:
    found = carried(new, OLD, **{"name": "x", "count": 3, **fields})
    assert (found.name, found.count) == ("x", 3)
    assert found.tag == fields.get("tag", [])


@pytest.mark.parametrize(
    "new, extra",
    [
        ("type item { string name  int count  string? note  string* tag  date? due }", "due"),
        ("type item { string name  int count  string* tag  int* size }", "size"),
        ("type item { string name  long count }", None),
        ("type item { string name  int? count }", None),
        ("type item { string name  int* count }", None),
        ("type item { int count }", None),
    ],
)
def test_new_readers_understand_old_writers(new: str, extra: str | None) -> None:
    found = carried(OLD, new, name="x", count=3, note="n", tag=["a"])
    assert found.count in (3, [3])
    if extra is not None:
        assert not getattr(found, extra)


@pytest.mark.parametrize(
    "new, fields, error, detail",
    [
        ("type item { string name }", {}, MalformedEvents, "a component is missing"),
        ("type item { string name  string count }", {"count": "3"}, InvalidValue, "another type"),
        (
            "type item { string name  long count }",
            {"count": 2**40},
            InvalidValue,
            "this is not a value of the type",
        ),
        ("type item { string name  int* count }", {"count": [1, 2]}, MalformedEvents, "twice"),
        ("type item { string name  int amount }", {"amount": 1}, MalformedEvents, "is missing"),
        (
            'namespace p "urn:p" type item { string name  int p:count }',
            {"count": 1},
            MalformedEvents,
            "a component is missing",
        ),
    ],
)
def test_what_breaks_old_readers_is_said(
    new: str, fields: dict[str, Any], error: type[XmlError], detail: str
) -> None:
    with pytest.raises(error, match=detail):
        carried(new, OLD, **{"name": "x", **fields})


@pytest.mark.parametrize(
    "new, detail",
    [
        ("type item { string name  int count  date due }", "a component is missing"),
        ("type item { string name  int count  string note }", "a component is missing"),
        ("type thing { string name } type item { thing name }", "another type"),
    ],
)
def test_what_breaks_new_readers_is_said(new: str, detail: str) -> None:
    with pytest.raises((MalformedEvents, InvalidValue), match=detail):
        carried(OLD, new, name="x", count=3)


def test_a_renamed_type_is_unknown() -> None:
    new, old = load("type thing { int count }", "new"), load("type item { int count }", "old")
    with pytest.raises(UnknownType, match="no decoder knows this type"):
        read(old, written(new, new.THING_TYPE, new.Thing(count=1)), old.Item)


def test_a_type_that_is_not_declared_is_the_one_of_the_description() -> None:
    module = load(OLD)
    bare = (
        b'<message xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="item">'
        b"<count> 3 </count><name>x</name></message>"
    )
    found = read(module, parse_xml(bare), module.Item)
    assert found == module.Item(name="x", count=3)


def message(inside: bytes) -> EventList:
    return parse_xml(
        b'<message xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        b' xmlns:xsd="http://www.w3.org/2001/XMLSchema" xsi:type="item">' + inside + b"</message>"
    )


@pytest.mark.parametrize(
    "inside, error, detail",
    [
        (b"<name>x</name><count>x</count>", InvalidValue, "this is not a value of the type"),
        (b"<name>x</name>text<count>1</count>", MalformedEvents, "an element was expected"),
        (b"<name>x</name><name>y</name><count>1</count>", MalformedEvents, "occurs twice"),
        (
            b"<name>x<b/></name><count>1</count>",
            MalformedEvents,
            "the end of an element was expected",
        ),
        (b"<name xsi:type='nobody'>x</name>", UnknownType, "no decoder knows"),
        (b"<name xsi:type='a:b'>x</name>", UnknownType, "declares no type"),
        (b"<count xsi:type='xsd:double'>1</count>", InvalidValue, "another type"),
    ],
)
def test_what_is_no_value_is_refused(inside: bytes, error: type[XmlError], detail: str) -> None:
    module = load(OLD)
    with pytest.raises(error, match=detail):
        read(module, message(inside), module.Item)


def test_unknown_elements_are_passed_over_whatever_they_hold() -> None:
    module = load(OLD)
    unknown = b"<new xsi:type='unheard-of'>t<name>no</name><!--c--></new>"
    found = read(
        module, message(unknown + b"<name>x</name><count>1</count>" + unknown), module.Item
    )
    assert found == module.Item(name="x", count=1)


def nested(module: ModuleType, depth: int) -> Any:
    value = module.Node()
    for _ in range(depth):
        value = module.Node(node=[value])
    return value


def test_depth_is_limited_before_python_gives_up() -> None:
    module = load("type node { node* node }")
    for depth in (63, 64):
        events = written(module, module.NODE_TYPE, nested(module, depth))
        if depth == 63:
            assert read(module, events, module.Node) == nested(module, depth)
        else:
            with pytest.raises(XmlTooLarge, match="too deeply nested"):
                read(module, events, module.Node)


def test_another_class_than_the_one_asked_for_is_refused() -> None:
    module = load("type a { } type b { }")
    events = written(module, module.A_TYPE, module.A())
    with pytest.raises(InvalidValue) as caught:
        read(module, events, module.B)
    assert caught.value.fields == {"expected": "B", "found": "A"}


def test_modules_of_several_descriptions_work_in_chains() -> None:
    one, two = load("type a { int x }", "one"), load("type b { int y }", "two")
    encoder = EncoderChain(codec(one, "Encoder"), codec(two, "Encoder"))
    decoder = DecoderChain(codec(one, "Decoder"), codec(two, "Decoder"))
    for type_, value in ((one.A_TYPE, one.A(x=1)), (two.B_TYPE, two.B(y=2))):
        events = to_document(ROOT, type_, value, encoder=encoder, prefixes=one.PREFIXES)
        assert from_document(events, ROOT, type(value), decoder=decoder) == value
