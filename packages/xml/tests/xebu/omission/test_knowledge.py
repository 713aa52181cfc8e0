"""What a schema tells both ends: strings, types, and which schema it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lasthop_xml.relaxng.schema import read_schema
from lasthop_xml.xas.events import TYPED_CONTENT
from lasthop_xml.xas.names import XSD_NS, XSI_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.errors import XebuStateError
from lasthop_xml.xebu.omission.decoder import SchemaDecoder
from lasthop_xml.xebu.omission.encoder import SchemaEncoder
from lasthop_xml.xebu.omission.knowledge import Knowledge
from lasthop_xml.xebu.omission.known_strings import MOST_KNOWN, known_strings
from lasthop_xml.xebu.omission.positions import MOST_POSITIONS
from lasthop_xml.xebu.omission.states import LOST
from lasthop_xml.xebu.omission.typing import typed_by_schema
from lasthop_xml.xebu.snapshot import restore_decoder, restore_encoder, save_decoder, save_encoder
from tests.xebu.omission.schemas import SCHEMAS
from tests.xebu.sessions import in_step

TYPED = "start = element a { element i { xsd:int }*, element s { xsd:string }? }"


def test_names_prefixes_and_fixed_strings_are_known() -> None:
    strings = known_strings(
        read_schema(
            'namespace p = "urn:p"\n'
            'element p:a { attribute b { "x" | "y" }, element c { "z" }, element d { xsd:int } }'
        )
    )
    assert strings.names == (
        Name("urn:p", "a"),
        Name("", "b"),
        Name("", "c"),
        Name("", "d"),
        XSI_TYPE,
        Name(XSI_NS, "xsi"),
        Name(XSD_NS, "xsd"),
        Name("urn:p", "p"),
    )
    assert strings.namespaces == ("urn:p", "", XSI_NS, XSD_NS)
    assert strings.values == (
        (Name("", "b"), "x"),
        (Name("", "b"), "y"),
        (XSI_TYPE, "xsd:int"),
    )
    assert strings.texts == ("z",)


def test_a_session_keeps_tokens_for_what_it_brings_itself() -> None:
    elements = ", ".join(f"element e{number} {{ text }}" for number in range(300))
    strings = known_strings(read_schema(f"element a {{ {elements} }}"))
    assert len(strings.names) == MOST_KNOWN
    assert strings.names[0] == Name("", "a")


def test_strings_that_get_no_token_are_not_known() -> None:
    strings = known_strings(read_schema(f'element a {{ element b {{ "{"x" * 2000}" }} }}'))
    assert strings.texts == ()


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    schema = SCHEMAS["names by the dozen"]
    program = (
        "import sys\n"
        "from lasthop_xml.relaxng.schema import read_schema\n"
        "from lasthop_xml.xebu.omission.knowledge import Knowledge\n"
        "print(Knowledge(read_schema(sys.argv[1])).fingerprint.hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, schema], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == Knowledge(read_schema(schema)).fingerprint.hex()


def test_different_schemas_have_different_fingerprints() -> None:
    prints = {Knowledge(read_schema(schema)).fingerprint for schema in SCHEMAS.values()}
    assert len(prints) == len(SCHEMAS)


@pytest.mark.parametrize(
    "document, values",
    [
        ("<a><i>5</i><i>-7</i></a>", [5, -7]),
        ("<a><i>007</i><i>x</i></a>", []),
        ("<a><i> 5</i></a>", []),
        ("<a><i>5<!-- --></i></a>", []),
        ("<a><s>text</s></a>", []),
        ("<a><b>5</b></a>", []),
    ],
)
def test_text_becomes_a_value_where_the_schema_says_so(document: str, values: list[int]) -> None:
    known = Knowledge(read_schema(TYPED))
    plain = parse_xml(document.encode())
    events = EventList(typed_by_schema(plain, known.automaton))
    assert [event.value for event in events if event.kind is TYPED_CONTENT] == values
    assert serialize_xml(events) == serialize_xml(plain)
    back = SchemaDecoder(known).decode(SchemaEncoder(known).encode(events))
    assert back == events


def test_an_xsi_type_has_the_last_word() -> None:
    known = Knowledge(read_schema(TYPED))
    document = (
        f'<a xmlns:xsd="{XSD_NS}" xmlns:xsi="{XSI_NS}">'
        '<i xsi:type="xsd:short">5</i><i xsi:type="my:own">6</i><i xsi:type="xsd:int">7</i></a>'
    )
    plain = parse_xml(document.encode())
    events = EventList(typed_by_schema(typed_sequence(plain), known.automaton))
    types = [event.name.local for event in events if event.kind is TYPED_CONTENT and event.name]
    assert types == ["short", "int"]
    encoder = SchemaEncoder(known)
    first = encoder.encode(events)
    assert SchemaDecoder(known).decode(first) == events


def test_values_of_the_schema_need_neither_names_nor_types() -> None:
    known = Knowledge(read_schema(TYPED))
    encoder = SchemaEncoder(known)
    events = list(typed_by_schema(parse_xml(b"<a>" + b"<i>5</i>" * 9 + b"</a>"), known.automaton))
    encoder.encode(events)
    assert encoder.encode(events) == b"\xd1\x6c\x09" + b"\x05" * 9 + b"\x04"


def test_content_that_is_too_large_is_passed_as_it_is() -> None:
    many = ", ".join(f"element e{number} {{ empty }}" for number in range(MOST_POSITIONS + 1))
    schema = read_schema(f"element a {{ {many} }}")
    known = Knowledge(schema)
    assert known.automaton.inside(schema.elements[0]) is LOST
    document = parse_xml(b"<a><e0/><e1/></a>")
    assert SchemaDecoder(known).decode(SchemaEncoder(known).encode(document)) == document


def test_long_content_does_not_need_a_deep_stack() -> None:
    many = ", ".join(f"element e{number} {{ xsd:int }}" for number in range(MOST_POSITIONS - 1))
    known = Knowledge(read_schema(f"element a {{ {many} }}"))
    assert len(known.automaton.states) > MOST_POSITIONS


def test_a_session_with_a_schema_is_kept() -> None:
    known = Knowledge(read_schema(SCHEMAS["recursion"]))
    encoder, decoder = SchemaEncoder(known), SchemaDecoder(known)
    first = parse_xml(b"<node><label>x</label><other/></node>")
    decoder.decode(encoder.encode(first))
    kept = restore_encoder(save_encoder(encoder), knowledge=known)
    other = restore_decoder(save_decoder(decoder), knowledge=known)
    assert isinstance(kept, SchemaEncoder)
    second = parse_xml(b"<node id='1'><label>x</label><node/></node>")
    message = kept.encode(second)
    assert message == encoder.encode(second)
    assert other.decode(message) == second
    assert in_step(kept, other)


def test_a_session_cannot_change_its_schema() -> None:
    ours, theirs = (Knowledge(read_schema(SCHEMAS[name])) for name in ("recursion", "interleave"))
    state = save_encoder(SchemaEncoder(ours))
    for knowledge in (theirs, None):
        with pytest.raises(
            XebuStateError, match="the snapshot is of a session with another schema"
        ):
            restore_encoder(state, knowledge=knowledge)
    with pytest.raises(XebuStateError, match="the snapshot is of a session with another schema"):
        restore_decoder(save_decoder(Decoder()), knowledge=ours)


def test_both_ends_reset_to_what_the_schema_tells() -> None:
    known = Knowledge(read_schema(SCHEMAS["recursion"]))
    encoder, decoder = SchemaEncoder(known), SchemaDecoder(known)
    document = parse_xml(b"<other>x</other>")
    decoder.decode(encoder.encode(document))
    encoder.reset()
    decoder.reset()
    message = encoder.encode(document)
    assert message[1:4] == b"\x09" + known.fingerprint
    assert decoder.decode(message) == document
    assert in_step(encoder, decoder)
