"""Whatever a peer sends to a decoder with a schema, it advances or fails."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given, settings, strategies as st

from lasthop_xml.relaxng.schema import read_schema
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.errors import XebuFormatError, XebuLimitError, XebuStateError
from lasthop_xml.xebu.omission.decoder import SchemaDecoder
from lasthop_xml.xebu.omission.encoder import SchemaEncoder
from lasthop_xml.xebu.omission.knowledge import Knowledge
from tests.relaxng.sampling import Sampler
from tests.xebu.omission.schemas import SCHEMAS

HEAD = b"\xd1"


@cache
def knowledge(schema: str) -> Knowledge:
    return Knowledge(read_schema(schema))


def survive(known: Knowledge, data: bytes) -> None:
    decoder = SchemaDecoder(known, limits=Limits(events=2000, depth=50))
    try:
        events = decoder.decode(data)
    except (XebuFormatError, XebuLimitError):
        assert decoder.poisoned
        return
    back = SchemaDecoder(known).decode(SchemaEncoder(known).encode(events))
    assert repr(list(back)) == repr(list(events))


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(sorted(SCHEMAS)), st.binary(max_size=40))
def test_noise_is_survived(schema: str, data: bytes) -> None:
    survive(knowledge(SCHEMAS[schema]), HEAD + data)


PARTS = [
    *(
        bytes((kind,))
        for kind in (0x04, 0x06, 0x08, 0x18, 0x38, 0xF8, 0x09, 0x0C, 0x4C, 0x2C, 0x6C)
    ),
    *(bytes((0x83, token)) for token in range(6)),
    *(bytes((0xC5, token)) for token in range(3)),
    *(bytes((0x82, token)) for token in range(3)),
    b"\x05",
    b"\x01a",
    b"\x07\x00\x01x",
    b"\x27\x00\x01x",
    b"\x1f\x01c",
]


@settings(deadline=None, max_examples=600)
@given(
    st.sampled_from(sorted(SCHEMAS)), st.lists(st.sampled_from(PARTS), max_size=25).map(b"".join)
)
def test_any_sequence_of_parts_is_survived(schema: str, data: bytes) -> None:
    survive(knowledge(SCHEMAS[schema]), HEAD + data)


@pytest.mark.parametrize("seed", range(6))
def test_damaged_messages_are_survived(seed: int) -> None:
    source = random.Random(seed)
    for schema in SCHEMAS.values():
        known = knowledge(schema)
        document = Sampler(read_schema(schema), seed).valid()
        if document is None:
            continue
        data = bytearray(SchemaEncoder(known).encode(document))
        for _ in range(20):
            damaged = bytearray(data)
            for _ in range(source.randrange(1, 4)):
                at = source.randrange(1, len(damaged))
                match source.randrange(3):
                    case 0:
                        damaged[at] = source.randrange(256)
                    case 1:
                        del damaged[at:]
                    case _:
                        damaged[at:at] = source.choice(PARTS)
                if len(damaged) < 2:
                    break
            survive(known, bytes(damaged))


@pytest.mark.parametrize(
    "data, message",
    [
        ("d1 09 00", "a message ends early"),
        ("d1 08 08", "the number of events left out is given twice"),
        ("d1 f8 81 2c 04", "more events were left out than the schema foresees"),
        ("d1 0d", "no event has this type"),
        ("d1 8c", "no event has this type"),
        ("d1 19", "no event has this type"),
        ("d1 14", "no event has this type"),
        ("d1 08 4c", "a value has no known type"),
        ("d1 08 0c", "a value has no known type"),
        ("d1 83 ff", "a token was never defined"),
        ("d1 c5 ff", "a token was never defined"),
        ("d1 08 04", "an element ends that is not open"),
        ("d1 08 83 00", "a message ends inside an element"),
        ("d1 82 03", "a message ends inside an element"),
        ("d1 2c 05 01 61", "a message ends early"),
        ("d1 6c 01 05", "a message ends early"),
        ("f1", "a document has flags that are not supported"),
    ],
)
def test_what_is_wrong_is_said(data: str, message: str) -> None:
    decoder = SchemaDecoder(knowledge(SCHEMAS["figure 5.1"]))
    with pytest.raises(XebuFormatError, match=message):
        decoder.decode(bytes.fromhex(data))
    with pytest.raises(XebuStateError, match="reset"):
        decoder.decode(HEAD)


def test_another_schema_is_noticed_with_the_first_message() -> None:
    ours, theirs = knowledge(SCHEMAS["figure 5.1"]), knowledge(SCHEMAS["figure 5.2"])
    document = parse_xml(b"<person><name>x</name><age>1</age></person>")
    with pytest.raises(XebuStateError, match="the other end has another schema"):
        SchemaDecoder(theirs).decode(SchemaEncoder(ours).encode(document))


def test_a_decoder_without_the_schema_refuses_what_leaves_something_out() -> None:
    message = SchemaEncoder(knowledge(SCHEMAS["figure 5.1"])).encode(parse_xml(b"<person/>"))
    with pytest.raises(XebuFormatError, match="a document has flags that are not supported"):
        Decoder().decode(message)


def test_a_decoder_with_a_schema_reads_plain_messages() -> None:
    document = parse_xml(b"<person><name>x</name></person>")
    known = knowledge(SCHEMAS["figure 5.1"])
    plain = Encoder(known=known.strings).encode(document)
    assert SchemaDecoder(known).decode(plain) == document


LONG = (
    "start = element a { "
    + ", ".join(["b"] * 20)
    + " }\nb = element b { c }\n"
    + ('c = element c { attribute d { "' + "x" * 900 + '" }, xsd:int }')
)


@pytest.mark.parametrize(
    "limits, message",
    [
        (Limits(events=30), "too many events"),
        (Limits(depth=2), "too deeply nested"),
        (Limits(size=5000), "expands to too much text"),
    ],
)
def test_few_bytes_cannot_become_any_number_of_events(limits: Limits, message: str) -> None:
    """Each of the values below stands for an element, its attribute and their ends."""
    known = knowledge(LONG)
    values = b"\x6c\x14" + b"\x05" * 20
    assert len(SchemaDecoder(known).decode(HEAD + values)) == 124
    with pytest.raises(XebuLimitError, match=message):
        SchemaDecoder(known, limits=limits).decode(HEAD + values)


def test_short_messages_do_not_become_long_documents() -> None:
    """The only valid document has four thousand million events, but nobody foresees them."""
    known = knowledge(
        "start = e0\n"
        + "\n".join(f"e{n} = element e{n} {{ e{n + 1}, e{n + 1} }}" for n in range(30))
        + "\ne30 = element e30 { empty }"
    )
    with pytest.raises(XebuFormatError, match="a message ends inside an element"):
        SchemaDecoder(known).decode(HEAD)
