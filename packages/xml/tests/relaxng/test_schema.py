"""Bytes to schemas, the simple form, and what keeps hostile schemas small."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop_xml.errors import XmlError
from lasthop_xml.relaxng.errors import NotValid, SchemaError, SchemaTooLarge
from lasthop_xml.relaxng.files import File
from lasthop_xml.relaxng.lexer import KEYWORDS
from lasthop_xml.relaxng.limits import SchemaLimits
from lasthop_xml.relaxng.nameclass import OneName
from lasthop_xml.relaxng.patterns import EMPTY, TEXT, Choice, Group, OneOrMore
from lasthop_xml.relaxng.schema import read_schema
from lasthop_xml.relaxng.validate import Validator
from lasthop_xml.xas.events import DOCUMENT_END, DOCUMENT_START, end, entity, start, typed
from lasthop_xml.xas.names import XSD_NS, Name
from lasthop_xml.xas.xmlparse import parse_xml

A = Name("", "a")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_schema_says_in_which_encoding_it_is(encoding: str) -> None:
    schema = read_schema("element été { text }".encode(encoding))
    assert schema.elements[0].names == OneName(Name("", "été"))


def test_a_schema_in_another_encoding_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"a schema is not in UTF-8 or UTF-16 \(offset=8\)"):
        read_schema(b"element \xe9 { text }")


def test_lines_end_in_three_ways() -> None:
    with pytest.raises(SchemaError) as caught:
        read_schema("element a {\r\ntext\r}\n}")
    assert (caught.value.fields["line"], caught.value.fields["column"]) == (4, 1)


def test_the_simple_form_has_one_object_for_equal_patterns() -> None:
    schema = read_schema("start = element a { b?, b*, (b | empty) }\nb = element b { text }")
    outer, inner = schema.elements
    assert isinstance(outer.content, Group)
    first, second, third = outer.content.parts
    assert first is third
    assert isinstance(first, Choice)
    assert first.parts == (EMPTY, inner)
    assert isinstance(second, Choice)
    assert isinstance(second.parts[1], OneOrMore)
    assert second.parts[1].content is inner
    assert inner.content is TEXT


def test_an_element_can_contain_itself() -> None:
    (only,) = read_schema("start = a\na = element a { a? }").elements
    assert isinstance(only.content, Choice)
    assert only.content.parts == (EMPTY, only)


def test_other_files_are_refused_unless_a_loader_is_given() -> None:
    with pytest.raises(SchemaError, match="a schema must be in one file here"):
        read_schema('include "other.rnc"')


def test_a_loader_that_fails_is_a_fault_of_the_reference() -> None:
    def load(href: str, source: str) -> File:
        raise PermissionError(13, "Permission denied", href)

    with pytest.raises(SchemaError, match=r"a file cannot be read.*Permission denied"):
        read_schema('include "other.rnc"', loader=load)


@pytest.mark.parametrize(
    "schema, detail",
    [
        ("#" * 1001, "a schema is too large"),
        ("element a { " * 11 + "text" + " }" * 11, "a schema is too deeply nested"),
        ("element " + "(" * 11 + "a" + ")" * 11 + " { text }", "a schema is too deeply nested"),
        ("a [ " + "b [ " * 11 + "]" * 12 + "start = element a { text }", "a schema is too deeply"),
        ("div { " * 11 + "}" * 11, "a schema is too deeply nested"),
        (
            "start = element a { d0 }\n"
            + "\n".join(f"d{n} = d{n + 1}?" for n in range(20))
            + "\nd20 = text",
            "definitions are too deeply nested",
        ),
        (
            "start = element a { d0 }\n"
            + "\n".join(f"d{n} = d{n + 1}, d{n + 1}" for n in range(9))
            + "\nd9 = text",
            "a schema has too many patterns",
        ),
        (
            "start = element a {" + ",".join(f"element e{n} {{ text }}" for n in range(40)) + "}",
            "a schema has too many patterns",
        ),
        ('start = element a { external "self" }', "a schema has too many files"),
    ],
)
def test_a_schema_has_limits(schema: str, detail: str) -> None:
    names = iter(range(100))

    def load(href: str, source: str) -> File:
        return File(f"{next(names)}", "element b { " + 'external "self" }')

    limits = SchemaLimits(size=1000, files=3, depth=10, patterns=40)
    with pytest.raises(SchemaTooLarge, match=detail):
        read_schema(schema, loader=load, limits=limits)


def test_deeply_nested_schemas_end_before_the_stack_does() -> None:
    deep = "(" * 5000
    with pytest.raises(SchemaTooLarge):
        read_schema("element a { " + deep)


@given(
    st.lists(
        st.sampled_from(
            [*KEYWORDS, *"=|&,?*+-~(){}[]", "|=", "&=", ">>", "##x\n", "a", "p:b", "p:*", '"l"']
        ),
        max_size=20,
    ).map(" ".join)
)
def test_any_tokens_are_a_schema_or_an_error_with_a_place(text: str) -> None:
    wrong: XmlError | None = None
    try:
        read_schema('namespace p = "p"\n' + text)
    except (SchemaError, SchemaTooLarge) as error:
        wrong = error
    assert wrong is None or wrong.fields["line"]


@given(st.text(max_size=60))
def test_any_text_is_a_schema_or_an_error(text: str) -> None:
    with pytest.raises(XmlError):
        read_schema("$" + text)


def test_values_are_validated_by_their_text() -> None:
    validator = Validator(read_schema('element a { xsd:int { maxInclusive = "5" } }'))
    for value, fine in ((5, True), (6, False)):
        events = [DOCUMENT_START, start(A), typed(Name(XSD_NS, "int"), value), end(A), DOCUMENT_END]
        assert validator.allows(events) is fine


@pytest.mark.parametrize(
    "document, message",
    [
        ("<b/>", r"this element is not allowed here \(index=1, name='b'\)"),
        ("<a y=''/>", r"this attribute is not allowed here, or not with this value \(index=2"),
        ("<a/>", r"an attribute is missing \(index=2\)"),
        ("<a x=''>t<b/></a>", r"this text is not allowed here \(index=4\)"),
        ("<a x=''><b>t</b></a>", r"this text is not allowed here \(index=5, name='b'\)"),
        ("<a x=''/>", r"an element is not complete \(index=3, name='a'\)"),
    ],
)
def test_what_is_wrong_with_a_document_is_said_with_its_event(document: str, message: str) -> None:
    validator = Validator(read_schema("element a { attribute x { text }, element b { empty }+ }"))
    with pytest.raises(NotValid, match=message):
        validator.check(parse_xml(document.encode()))


def test_a_sequence_without_a_root_is_not_valid() -> None:
    validator = Validator(read_schema("element a { text }"))
    with pytest.raises(NotValid, match="a document has no root"):
        validator.check([DOCUMENT_START, DOCUMENT_END])


def test_an_entity_has_no_text() -> None:
    validator = Validator(read_schema("element a { text }"))
    with pytest.raises(NotValid, match="the text of an entity reference is unknown"):
        validator.check([DOCUMENT_START, start(A), entity("e"), end(A), DOCUMENT_END])


def test_names_that_no_schema_knows_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lasthop_xml.relaxng.derivatives.MOST_REMEMBERED", 5)
    validator = Validator(read_schema("start = x\nx = element * { x* }"))
    for number in range(20):
        validator.check(parse_xml(f"<a><b{number}/></a>".encode()))
    assert len(validator._derivatives._opened) <= 5


def test_a_schema_that_explodes_is_stopped() -> None:
    parts = " & ".join(f"(element e{n} {{ empty }}, element f{n} {{ empty }})*" for n in range(10))
    schema = read_schema(f"element a {{ {parts} }}")
    body, inside = [], 0
    for turn in range(1, 1024):  # a Gray code: all sets of pairs that can be half-way
        place = (turn & -turn).bit_length() - 1
        body.append(f"<{'f' if inside >> place & 1 else 'e'}{place}/>")
        inside ^= 1 << place
    document = parse_xml(f"<a>{''.join(body)}</a>".encode())
    assert not Validator(schema).allows(document)
    with pytest.raises(SchemaTooLarge, match="too many patterns"):
        Validator(schema, limits=SchemaLimits(derived=500)).allows(document)


def test_what_was_derived_is_forgotten_between_documents() -> None:
    """Each document leads to four patterns that no other one needs."""
    optional = ", ".join(f"element e{n} {{ empty }}?" for n in range(40))
    schema = read_schema(f"element a {{ {optional} }}")
    validator = Validator(schema, limits=SchemaLimits(derived=60))
    for number in range(39):
        validator.check(parse_xml(f"<a><e{number}/></a>".encode()))


@pytest.mark.parametrize(
    "type_, text",
    [
        ("NMTOKEN", "a" * 5000 + "!"),
        ("NMTOKENS", "a-" * 5000 + "!"),
        ("Name", "a:" * 5000 + "!"),
        ("base64Binary", "A " * 5000 + "!"),
        ("anyURI", "a%" * 5000),
        ("duration", "P" + "1" * 5000),
        ("dateTime", "1" * 5000),
        ("language", "a-" * 5000),
        ("decimal", "1" * 5000 + "e"),
        ("double", "1" * 5000 + "e"),
        ('string { pattern = "(a|aa)*b" }', "a" * 5000),
        ('string { pattern = "(a*)*b" }', "a" * 2000),
    ],
)
def test_long_texts_that_are_no_values_are_refused_at_once(type_: str, text: str) -> None:
    validator = Validator(read_schema(f"element a {{ xsd:{type_} }}"))
    assert not validator.allows(parse_xml(f"<a>{text}</a>".encode()))
