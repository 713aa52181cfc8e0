"""Generated modules are good Python, and their values survive every format."""

import keyword
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from lasthop_xml.orl.errors import MalformedOrl
from lasthop_xml.orl.generator import generate
from lasthop_xml.orl.model import Description, Occurrence
from lasthop_xml.orl.parser import parse
from lasthop_xml.xas.errors import InvalidValue
from lasthop_xml.xas.names import XSD_NS, Name
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.types.table import PRIMITIVES
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from tests.orl.modules import load, read, written
from tests.places import PACKAGE, REPOSITORY
from tests.xas.documents import exact
from tests.xas.strategies import VALUES

PEOPLE = Path(__file__).with_name("people.orl").read_text()

LONG = "t" * 28
AWKWARD = f"""
codec-name Wire
namespace long-prefix.1 "urn:a-very-long-namespace:{"n" * 60}"
namespace e "urn:é"
type empty {{ }}
type Source {{ string source  any-of* Writer }}
type any-of {{ string? str  int* int  date? date  dateTime? datetime  Any? any  Source* it }}
type Any {{ boolean value  float writer  QName? class  duration* field  decimal list }}
type long-prefix.1:{LONG} {{
    string {"c" * 40}
    long-prefix.1:{LONG}* a-component-with-a-rather-long-name
    e:name? e:name
    string* each
}}
type e:name {{ base64Binary* first-name time? firstname  string self }}
type wire-encoder {{ empty empty  Final? Final }}
type Final {{ string a.b  string? a-c }}
type Name {{ Name* name }}
type time-type {{ time* time }}
"""

WORDS = ["first", "Last-Name", "value", "a.b", "näme", "type", "x_1", "dateOfBirth", "writer", "it"]


@st.composite
def descriptions(draw: st.DrawFn) -> str:
    """Descriptions with every primitive type, namespaces and recursion."""
    names = draw(
        st.lists(
            st.sampled_from(["alpha", "p:beta", "q:gamma", "Name", "p:Source", "delta-x"]),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    lines = ['namespace p "urn:p" namespace q "urn:q"']
    words = st.sampled_from([*WORDS, *sorted(keyword.kwlist)[:12]])
    for index, name in enumerate(names):
        lines.append(f"type {name} {{")
        for word in draw(st.lists(words, max_size=4, unique=True)):
            prefix = draw(st.sampled_from(["", "", "p:"]))
            # Only what has been defined may be contained without a mark.
            type_ = draw(st.sampled_from([*VALUES, *names[:index]]))
            mark = draw(st.sampled_from(["", "?", "*"]))
            if draw(st.integers(0, 4)) == 0:
                type_, mark = draw(st.sampled_from(names)), draw(st.sampled_from(["?", "*"]))
            lines.append(f"    {type_}{mark} {prefix}{word}")
        lines.append("}")
    return "\n".join(lines)


def value_of(
    draw: st.DrawFn, module: ModuleType, description: Description, type_: Name, depth: int = 0
) -> Any:
    if type_ in PRIMITIVES:
        return draw(VALUES[type_.local])
    structure = next(each for each in description.structures if each.name == type_)
    class_ = class_of(module, type_)
    values: list[Any] = []
    for component in structure.components:
        if component.occurrence is Occurrence.ONE:
            count = 1
        elif depth > 2 and component.type not in PRIMITIVES:
            count = 0
        else:
            count = draw(st.integers(0, 1 if component.occurrence is Occurrence.OPTIONAL else 3))
        made = [
            value_of(draw, module, description, component.type, depth + 1) for _ in range(count)
        ]
        if component.occurrence is Occurrence.REPEATED:
            values.append(made)
        else:
            values.append(made[0] if made else None)
    fields = class_.__dataclass_fields__
    return class_(**dict(zip(fields, values, strict=True)))


def class_of(module: ModuleType, type_: Name) -> Any:
    shown = f"{ {'urn:p': 'p:', 'urn:q': 'q:'}.get(type_.ns, '') }{type_.local}"
    (found,) = [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type) and thing.__doc__ == f"Type {shown}."
    ]
    return found


@given(st.data(), descriptions())
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_values_survive_xml_and_xebu(data: st.DataObject, source: str) -> None:
    description = parse(source)
    module = load(source)
    type_ = data.draw(st.sampled_from([each.name for each in description.structures]))

    @st.composite
    def values(draw: st.DrawFn) -> Any:
        return value_of(draw, module, description, type_)

    value = data.draw(values())
    class_ = type(value)
    events = written(module, type_, value)
    forms = [
        events,
        parse_xml(serialize_xml(events)),
        list(typed_sequence(parse_xml(serialize_xml(events)))),
        Decoder().decode(Encoder().encode(events)),
    ]
    for form in forms:
        again = read(module, form, class_)
        assert type(again) is class_
        assert exact(written(module, type_, again)) == exact(events)


def test_generated_modules_pass_the_strictest_checks(tmp_path: Path) -> None:
    for name, source in {"people": PEOPLE, "awkward": AWKWARD}.items():
        (tmp_path / f"{name}.py").write_text(generate(parse(source), source=f"{name}.orl"))
    (tmp_path / "own.py").write_text(generate(parse("package people " + PEOPLE), source="own.orl"))
    tools = Path(sys.executable).parent
    # Our own rules, in a project that uses us.
    rules = (REPOSITORY / "pyproject.toml").read_text()
    config = str(tmp_path / "pyproject.toml")
    Path(config).write_text(rules.replace('"lasthop", "lasthop_xml", "tests", "bench"', '"people"'))
    for command in (
        ["ruff", "check", "--no-cache", "--config", config],
        ["ruff", "format", "--no-cache", "--check", "--config", config],
        ["mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path / "cache")],
    ):
        run = subprocess.run(
            [str(tools / command[0]), *command[1:], str(tmp_path)],
            env={"MYPYPATH": f"{PACKAGE / 'src'}:{tmp_path}", "PATH": str(tools)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr


def test_the_module_reads_as_a_person_would_write_it() -> None:
    text = generate(parse(PEOPLE), source="people.orl")
    assert (
        '''class Name:
    """Type people:name."""

    first: str
    middle: str | None = None
    last: str
'''
        in text
    )
    assert "        middle=found.optional(_MIDDLE_ELEMENT, str),\n" in text


def test_own_classes_are_imported_rather_than_written() -> None:
    text = generate(parse("package my.people " + PEOPLE), source="people.orl")
    assert "from my.people import Name, Person\n" in text
    assert "@dataclass" not in text


@pytest.mark.parametrize(
    "source, detail, python",
    [
        ("type a { string b-c string b.c }", "two components have the same name in Python", "b_c"),
        (
            "type a-b { } type a.b { } type a_b { }",
            "two types have the same name in Python",
            "ABType",
        ),
    ],
)
def test_names_that_become_one_are_refused(source: str, detail: str, python: str) -> None:
    with pytest.raises(MalformedOrl) as caught:
        generate(parse(source), source="x.orl")
    assert caught.value.detail == detail
    assert caught.value.fields["python"] == python
    assert caught.value.fields["line"] == 1


def test_a_wrong_object_is_refused_before_it_is_written() -> None:
    module = load(PEOPLE)
    with pytest.raises(InvalidValue) as caught:
        written(module, module.PERSON_TYPE, module.Name(first="a", last="b"))
    assert caught.value.fields == {"expected": "Person", "found": "Name"}
    person = module.Person(name="Richard", nation="DE", born=None)
    with pytest.raises(InvalidValue):
        written(module, module.PERSON_TYPE, person)


def test_every_primitive_type_has_a_class() -> None:
    lines = "\n".join(f"    {type_.local} v{index}" for index, type_ in enumerate(PRIMITIVES))
    module = load(f"type all {{\n{lines}\n}}")
    assert len(module.All.__dataclass_fields__) == len(PRIMITIVES)
    assert Name(XSD_NS, "string") in PRIMITIVES
