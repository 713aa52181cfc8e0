"""A description is understood, or its first mistake is named with its place."""

import pytest

from lasthop_xml.orl.errors import MalformedOrl
from lasthop_xml.orl.model import Occurrence
from lasthop_xml.orl.parser import MAX_SIZE, parse
from lasthop_xml.xas.names import XSD_NS, Name

PEOPLE = """
package my.people  codec-package my.codecs
codec-name People
namespace p "urn:people"   # who they are
type p:name { string first  string? middle  string last }
type person {
    p:name name
    xsd:date? p:born
    person* child
}
"""


def test_everything_in_a_description_is_understood() -> None:
    found = parse(PEOPLE)
    assert (found.package, found.codec_package, found.codec_name) == (
        *("my.people", "my.codecs"),
        "People",
    )
    assert found.namespaces == {"p": "urn:people"}
    name, person = found.structures
    assert name.name == Name("urn:people", "name")
    assert [(each.name.local, each.occurrence) for each in name.components] == [
        ("first", Occurrence.ONE),
        ("middle", Occurrence.OPTIONAL),
        ("last", Occurrence.ONE),
    ]
    assert {each.type for each in name.components} == {Name(XSD_NS, "string")}
    assert [(each.name, each.type, each.occurrence.value) for each in person.components] == [
        (Name("", "name"), Name("urn:people", "name"), ""),
        (Name("urn:people", "born"), Name(XSD_NS, "date"), "?"),
        (Name("", "child"), Name("", "person"), "*"),
    ]
    assert (person.line, person.column) == (6, 6)
    assert (person.components[1].line, person.components[1].column) == (8, 15)


def test_words_of_the_language_can_be_names() -> None:
    (found,) = parse("type type { string type string namespace type* package }").structures
    assert [each.name.local for each in found.components] == ["type", "namespace", "package"]


@pytest.mark.parametrize(
    "source, line, column, detail, fields",
    [
        ("", 1, 1, "a description must define at least one type", {"expected": "type"}),
        (
            *("type a {\n  string\n}", 3, 1, "something else was expected"),
            {"expected": "the name of a component", "found": "}"},
        ),
        (
            *("type a { string b", 1, 18, "something else was expected"),
            {"expected": "a component or }", "found": "the end of the file"},
        ),
        (
            "type a string",
            1,
            8,
            "something else was expected",
            {"expected": "{", "found": "string"},
        ),
        (
            *("type { }", 1, 6, "something else was expected"),
            {"expected": "the name of a type", "found": "{"},
        ),
        ("typ a { }", 1, 1, "something else was expected", {"expected": "type", "found": "typ"}),
        (
            *("type a { } namespace p 'x'", 1, 12, "something else was expected"),
            {"expected": "type", "found": "namespace"},
        ),
        (
            *("namespace p urn:p", 1, 13, "something else was expected"),
            {"expected": "a namespace in quotation marks", "found": "urn:p"},
        ),
        ('namespace p "urn:p', 1, 13, "a text does not end on its line", {}),
        ('namespace 1 "u"', 1, 11, "this is not a valid prefix", {"prefix": "1"}),
        ('namespace p "u"\nnamespace p "v"', 2, 11, "a prefix is declared twice", {"prefix": "p"}),
        (
            'namespace xsd "u"',
            1,
            11,
            "this prefix is reserved for another namespace",
            {"prefix": "xsd"},
        ),
        ('namespace p ""', 1, 13, "a namespace must not be empty", {"prefix": "p"}),
        ('namespace p "\x01"', 1, 13, "a text has a character that XML does not allow", {}),
        ("package a package b", 1, 11, "a header is given twice", {"header": "package"}),
        (
            *("package a..b", 1, 9, "something else was expected"),
            {"expected": "names with dots between them", "found": "a..b"},
        ),
        (
            *("codec-name a.b", 1, 12, "something else was expected"),
            {"expected": "a name", "found": "a.b"},
        ),
        (
            "type a { strin b }",
            1,
            10,
            "this type is neither primitive nor defined in this file",
            {"type": "strin"},
        ),
        ("type q:a { }", 1, 6, "no namespace is declared for this prefix", {"prefix": "q"}),
        ("type 9 { }", 1, 6, "this is not a name", {"found": "9"}),
        ("type a { string b: }", 1, 17, "this is not a name", {"found": "b:"}),
        ("type a { } type a { }", 1, 17, "a type is defined twice", {"type": "a", "first_line": 1}),
        ("type a { int b\n string b }", 2, 9, "a type has a component twice", {"component": "b"}),
        (
            "type date { }",
            1,
            6,
            "a type must not have the name of a primitive type",
            {"type": "date"},
        ),
        (
            *("type xsd:x { }", 1, 6, "types of XML Schema cannot be defined again"),
            {"type": "xsd:x"},
        ),
        (
            *("type ok { }\ntype a { b b } type b { ok c a a }", 2, 6),
            "a type always contains itself; make a component optional or repeated",
            {"type": "a"},
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(
    source: str, line: int, column: int, detail: str, fields: dict[str, object]
) -> None:
    with pytest.raises(MalformedOrl) as caught:
        parse(source)
    assert caught.value.detail == detail
    assert caught.value.fields == {**fields, "line": line, "column": column}


def test_a_description_has_a_greatest_size() -> None:
    parse("type a { }" + " " * (MAX_SIZE - 10))
    with pytest.raises(MalformedOrl, match="too long"):
        parse("type a { }" + " " * (MAX_SIZE - 9))
