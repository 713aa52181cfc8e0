"""Whatever a peer sends, only our own errors come out, quickly, in bounded memory."""

import random
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from lasthop_xml.errors import XmlError
from lasthop_xml.xas.canonical import canonical
from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    DOCUMENT_END,
    DOCUMENT_START,
    Event,
    attribute,
    content,
    end,
    prefix,
    start,
)
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.tree import Tree
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.errors import XebuFormatError, XebuLimitError, XebuStateError
from lasthop_xml.xebu.snapshot import restore_decoder, restore_encoder, save_decoder, save_encoder
from lasthop_xml.xebu.tokens import Mode
from tests.xas.documents import Documents

A = Name("", "a")
HEAD = "c1 03 00 00 00 01 61 06"
"""A document, and an element `a` with no namespace."""


def survive(decoder: Decoder, data: bytes) -> None:
    """Decode and use what comes out as an application would."""
    try:
        events = decoder.decode(data)
    except (XebuFormatError, XebuLimitError):
        assert decoder.poisoned
        with pytest.raises(XebuStateError):
            decoder.decode(data)
        return
    Tree(events)
    with suppress(MalformedEvents):
        # What is no document is refused here; what is one can be read again.
        parse_xml(serialize_xml(events))
    canonical(events)
    assert Decoder().decode(Encoder().encode(events)) == events or _has_nan(events)


def _has_nan(events: EventList) -> bool:
    return any(event.value != event.value for event in events)


@settings(deadline=None)
@given(st.sampled_from(Mode), st.binary(max_size=60))
def test_noise_is_survived(mode: Mode, data: bytes) -> None:
    survive(Decoder(), data)
    survive(Decoder(), bytes((mode.value | 1,)) + data)


@pytest.mark.parametrize("seed", range(8))
def test_damaged_messages_are_survived(seed: int) -> None:
    source = random.Random(seed)
    documents = Documents(seed)
    for _ in range(60):
        mode = source.choice(list(Mode))
        encoder, decoder = Encoder(mode), Decoder()
        first = documents.next()
        decoder.decode(encoder.encode(first))
        data = bytearray(encoder.encode(documents.next()))
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(data))
            match source.randrange(3):
                case 0:
                    data[at] = source.randrange(256)
                case 1:
                    del data[at : at + source.randrange(4)]
                case _:
                    data[at:at] = source.randbytes(source.randrange(3))
            data = data or bytearray(1)
        with suppress(MalformedEvents):
            survive(decoder, bytes(data))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_xml_and_snapshots_are_survived(seed: int) -> None:
    source = random.Random(seed)
    documents = Documents(seed)
    encoder, decoder = Encoder(), Decoder()
    for _ in range(60):
        data = bytearray(serialize_xml(documents.next()))
        decoder.decode(encoder.encode(parse_xml(bytes(data))))
        data[source.randrange(len(data))] = source.randrange(256)
        with suppress(XmlError):
            serialize_xml(parse_xml(bytes(data)))
        for save in (bytearray(save_encoder(encoder)), bytearray(save_decoder(decoder))):
            save[source.randrange(len(save))] = source.randrange(256)
            with suppress(XmlError):
                restore_encoder(bytes(save))
            with suppress(XmlError):
                restore_decoder(bytes(save))


@pytest.mark.parametrize(
    "data, detail",
    [
        ("", "a message ends early"),
        ("03", "a message does not start with a document"),
        ("41", "a document has flags that are not supported"),
        ("e1", "a document has flags that are not supported"),
        ("c1 83 00", "a token was never defined"),
        ("c1 43 00", "a token was never defined"),
        (f"{HEAD} c5 00", "a token was never defined"),
        (f"{HEAD} c7 00", "a token was never defined"),
        (f"{HEAD} 8f 00", "a token was never defined"),
        (f"{HEAD} 9c 09 00", "a token was never defined"),
        (f"{HEAD}", "a message ends inside an element"),
        (f"{HEAD} 04 04", "a message ends early"),
        (f"{HEAD} 07 00 05 61 62", "a message ends early"),
        (f"{HEAD} 07 00 c1 00 00 00 00 04", "a number has an unknown form"),
        (f"{HEAD} 27 00 01 61 04", "a text in pieces has no end"),
        (f"{HEAD} 0c 05 04", "a value has no known type"),
        (f"{HEAD} 2c 01 05 04", "a value has no known type"),
        (f"{HEAD} 9c 00 05 04", "a value has no known type"),
        (f"{HEAD} 0a 05 04", "no event has this type"),
        (f"{HEAD} 01 04", "no event has this type"),
        (f"{HEAD} 6c 04", "no event has this type"),
        (f"{HEAD} 3f 00 01 61 04", "an event of a special type is malformed"),
        (f"{HEAD} 2f 00 01 20 04", "an event of a special type is malformed"),
        (f"{HEAD} 07 00 01 00 04", "a text has a character that XML does not allow"),
        (f"{HEAD} 43 00 01 01 20 04 04", "this is not a local name"),
    ],
)
def test_what_is_wrong_is_said(data: str, detail: str) -> None:
    decoder = Decoder()
    with pytest.raises(XebuFormatError) as caught:
        decoder.decode(bytes.fromhex(data))
    assert caught.value.detail == detail
    assert decoder.poisoned


def test_text_has_to_be_utf8() -> None:
    with pytest.raises(XebuFormatError, match="utf-8"):
        Decoder().decode(bytes.fromhex(f"{HEAD} 07 00 01 ff 04"))


@pytest.mark.parametrize(
    "events, limits",
    [
        ([start(A)] * 300 + [end(A)] * 300, Limits(depth=250)),
        ([start(A), *[content("x")] * 500, end(A)], Limits(events=400, depth=5)),
        ([start(A), *[content("x" * 1000)] * 500, end(A)], Limits(size=400_000)),
        ([start(Name("", "x" * 5000)), end(Name("", "x" * 5000))], Limits(name=1000)),
        ([prefix("urn:" + "x" * 5000, "p"), start(A), end(A)], Limits(name=1000)),
    ],
)
def test_limits_hold(events: list[Event], limits: Limits) -> None:
    message = Encoder().encode([DOCUMENT_START, *events, DOCUMENT_END])
    assert Decoder(limits=Limits(depth=300, name=6000)).decode(message)[1:-1] == events
    decoder = Decoder(limits=limits)
    with pytest.raises(XebuLimitError):
        decoder.decode(message)
    with pytest.raises(XebuStateError):
        decoder.decode(message)


def test_a_value_may_be_as_long_as_its_message() -> None:
    events = [DOCUMENT_START, start(A), attribute(A, "x" * 100_000), end(A), DOCUMENT_END]
    assert Decoder().decode(Encoder().encode(events)) == events


def test_a_message_is_no_larger_than_allowed() -> None:
    encoder = Encoder(max_message=100)
    events = [DOCUMENT_START, start(A), content("x" * 100), end(A), DOCUMENT_END]
    with pytest.raises(XebuLimitError, match="too large"):
        encoder.encode(events)
    assert encoder.messages == len(encoder.tables.names.tokens) == 0
    decoder = Decoder(max_message=100)
    with pytest.raises(XebuLimitError, match="too large"):
        decoder.decode(b"\x01" * 101)


def test_a_small_message_cannot_take_much_memory() -> None:
    text = "x" * 1000
    once = Encoder().encode([DOCUMENT_START, start(A), content(text), end(A), DOCUMENT_END])
    # The text again and again, two bytes each time.
    bomb = once[:-1] + b"\xc7\x00" * 100_000 + once[-1:]
    nested = b"\xc1\x03\x00\x00\x00\x01a" + b"\x83\x00" * 300_000
    huge = bytes.fromhex(f"{HEAD} 07 00 c0 ff ff ff ff 61")
    tracemalloc.start()
    try:
        for data in (bomb, nested, huge):
            with pytest.raises((XebuLimitError, XebuFormatError)):
                Decoder().decode(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * 2**20


def test_full_tables_stay_within_their_bound() -> None:
    encoder, decoder = Encoder(), Decoder()
    filler = "y" * 1000
    for number in range(0, 2000, 250):
        parts: list[Event] = []
        for index in range(number, number + 250):
            name = Name(f"urn:{index}" + filler[:900], f"n{index}" + filler[:900])
            parts += [start(name), attribute(name, f"{index}{filler}"), content(f"{index}{filler}")]
            parts.append(end(name))
        decoder.decode(encoder.encode([DOCUMENT_START, start(A), *parts, end(A), DOCUMENT_END]))
    assert len(save_decoder(decoder)) < 2 * 2**20
