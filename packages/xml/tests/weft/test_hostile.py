"""Whatever a peer sends, only our own errors come out, quickly, in bounded memory."""

import random
import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from lasthop_xml.errors import XmlError
from lasthop_xml.weft.engines import Engine
from lasthop_xml.weft.errors import WeftFormatError, WeftLimitError, WeftStateError
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.weft.snapshot import restore_decoder, restore_encoder, save_decoder, save_encoder
from lasthop_xml.xas.canonical import canonical
from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import Event, attribute, comment, content, end, start
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.tree import Tree
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from tests.weft.ends import ENGINES, A, document, sample
from tests.xas.documents import Documents

each_engine = pytest.mark.parametrize("engine", ENGINES, ids=str)


def sealed(level: int, body: bytes, chain: int = 0) -> bytes:
    """A message whose check is right: an attacker can count as well."""
    check = zlib.crc32(body, chain ^ level ^ 4) & 0xFFFF
    return bytes((level | 4, 0)) + check.to_bytes(2, "big") + body


def survive(decoder: WeftDecoder, data: bytes) -> None:
    """Decode and use what comes out as an application would."""
    try:
        events = decoder.decode(data)
    except (WeftFormatError, WeftLimitError):
        assert decoder.poisoned
        with pytest.raises(WeftStateError):
            decoder.decode(b"\0\0\0\0\0")
        return
    Tree(events)
    with suppress(MalformedEvents):
        # What is no document is refused here; what is one can be read again.
        parse_xml(serialize_xml(events))
    canonical(events)
    WeftDecoder().decode(WeftEncoder().encode(events))


@each_engine
@settings(deadline=None, max_examples=200)
@given(st.sampled_from(Level), st.binary(max_size=80))
def test_noise_is_survived(engine: Engine, level: Level, data: bytes) -> None:
    survive(WeftDecoder(engine=engine), data)
    if level is Level.DEFLATE:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    survive(WeftDecoder(engine=engine), sealed(level, data))


@pytest.mark.parametrize("seed", range(2))
@each_engine
def test_damaged_messages_are_survived(engine: Engine, seed: int) -> None:
    source = random.Random(seed)
    documents = Documents(seed)
    for _ in range(25):
        level = source.choice([Level.FAST, Level.FAST, Level.MAX])
        encoder, decoder = WeftEncoder(level, engine=engine), WeftDecoder(engine=engine)
        decoder.decode(encoder.encode(source.choice(sample(3))))
        body = bytearray(encoder.encode(documents.next())[3:])
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(body))
            match source.randrange(3):
                case 0:
                    body[at] = source.randrange(256)
                case 1:
                    del body[at : at + source.randrange(4)]
                case _:
                    body[at:at] = source.randbytes(source.randrange(3))
            body = body or bytearray(1)
        check = zlib.crc32(body, decoder.chain ^ level) & 0xFFFF
        survive(decoder, bytes((level,)) + check.to_bytes(2, "big") + body)


@pytest.mark.parametrize("seed", range(2))
def test_damaged_snapshots_are_survived(seed: int) -> None:
    source = random.Random(seed)
    encoder, decoder = WeftEncoder(Level.MAX), WeftDecoder()
    for events in sample(2):
        decoder.decode(encoder.encode(events))
    for whole in (save_encoder(encoder), save_decoder(decoder)):
        for _ in range(15):
            data = bytearray(whole)
            data[source.randrange(len(data))] = source.randrange(256)
            with suppress(XmlError):
                restored = restore_encoder(bytes(data))
                restored.encode(sample(3)[2])
            with suppress(XmlError):
                restore_decoder(bytes(data)).decode(encoder.encode(sample(1)[0]))


@pytest.mark.parametrize(
    "data, detail",
    [
        ("", "a message ends early"),
        ("08 00 00", "a message has an unknown form"),
        ("03 00 00", "a message has an unknown form"),
        ("00 00 00", "does not continue the session"),
        (sealed(0, b"").hex(), "a message ends early"),
        (sealed(0, b"\x00").hex(), "a message ends early"),
        (sealed(0, b"\x00\x00").hex(), "does not end where its document does"),
        (sealed(0, b"\x00\x02").hex(), "the bits after the last step must be 0"),
        (sealed(0, b"\x01\x00").hex(), "a message asks for a guess where none is known"),
        (sealed(0, b"\x00\x01\x05").hex(), "no run has this number"),
        (sealed(0, b"\x00\x01\x00\x00").hex(), "more elements end than were open"),
        (sealed(0, b"\x00\x01\x00\x07").hex(), "a run has an unknown item"),
        (sealed(0, b"\x00\x01\x00\x36").hex(), "a run has an unknown item"),
        (sealed(0, b"\x00\x01\x00\x0e").hex(), "does not end where its document does"),
        (sealed(0, b"\x00\x01\x00\x01\x00\x00\x01a\x06").hex(), "ends inside an element"),
        (sealed(0, b"\x00\x01\x00\x01\x00\x00\x01 \x06").hex(), "not a local name"),
        (sealed(0, b"\x01\x01\x00\x00\x06").hex(), "a value comes after the end of the document"),
        (sealed(0, b"\x01\x01\x00\x00\x0e\x00").hex(), "where none is known"),
        (sealed(0, b"\x01\x01\x00\x00\x0e\x03").hex(), "no value has this number"),
        (sealed(0, b"\x01\x01\x00\x00\x0e\x04\x07").hex(), "a word has an unknown form"),
        (sealed(0, b"\x01\x01\x00\x00\x0e\x04\x00").hex(), "uses an unknown number"),
        (sealed(0, b"\x01\x01\x00\x00\x0e\x42\x00").hex(), "too many words"),
        (sealed(0, b"\x01\x01\x00\x00\x0e\x04\x09\x00").hex(), "a character that XML"),
        (sealed(0, b"\x01\x01\x00\x00\x0e\x02\x01\x00").hex(), "a character that XML"),
        (sealed(0, b"\x01\x01\x00\x00\x0e\x04\x09\xff").hex(), "utf-8"),
        (sealed(0, b"\x01\x01\x00\x00\x2e\x04\x09 ").hex(), "a name is malformed"),
        (
            sealed(0, b"\x01\x01\x00\x00\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").hex(),
            "digits",
        ),
        (sealed(1, b"\xff\xff").hex(), "invalid"),
        (sealed(1, b"\x03\x00").hex(), "a deflate stream has ended"),
    ],
)
@each_engine
def test_what_is_wrong_is_said(engine: Engine, data: str, detail: str) -> None:
    decoder = WeftDecoder(engine=engine)
    with pytest.raises(WeftFormatError) as caught:
        decoder.decode(bytes.fromhex(data))
    assert detail in str(caught.value)
    assert decoder.poisoned


@each_engine
def test_numbers_stay_in_their_range(engine: Engine) -> None:
    xsd = b"http://www.w3.org/2001/XMLSchema"
    head = b"\x01\x03\x00\x00\x05\x00" + bytes((len(xsd),)) + xsd
    for local, code, detail in (
        (b"byte", b"\x83\x08", "out of range"),
        (b"boolean", b"\x13", "out of range"),
        (b"int", b"\x83\x80\x80\x80\x80\x80\x01", "out of range"),
        (b"int", b"\x03\x04\x09x", "canonical"),
        (b"double", b"\x3e\x04\x09x", "canonical"),
        (b"double", b"\xc2\x01\x05", "unknown form"),
        (b"date", b"\x04\x09x", "canonical"),
        (b"dateTime", b"\x83\x80\x80\x80\x80\x80\x80\x01", "out of range|too large"),
        (b"nothing", b"\x04\x09x", "no primitive type"),
    ):
        data = head + bytes((len(local),)) + local + code + b"\x00\x06"
        with pytest.raises(WeftFormatError, match=detail):
            WeftDecoder(engine=engine).decode(sealed(0, data))


@each_engine
def test_a_small_message_cannot_take_much_memory_or_time(engine: Engine) -> None:
    word = "w" * 250
    long = WeftEncoder(engine=engine).encode(document(content(word)))[4:]
    assert long[:2] == b"\x01\x03"
    # The same word 31 times in a text, and thousands of such texts.
    text = b"\x40" + b"\x00" * 31
    steps = 20_000
    bits = b"\xff" * (steps // 8) + b"\x01"
    bomb = b"\xa0\x9c\x01" + bits + b"\x00\x00\x0e\x04" + b"\xd1\x0f" + word.encode()
    bomb += (b"\x00\x01" + text) * (steps - 1)
    run = b"\x00\x01\x00" + b"\xf8\xff\xff\x03"
    deep = b"\x00\x01\x00" + (b"\x01\x00\x00\x01a" + b"\x09" * 900) + b"\x06"
    many = b"\xff\xff\x7f" + b"\x00" * 500_000
    zeros = zlib.compressobj(9, zlib.DEFLATED, -15)
    inflated = (zeros.compress(b"\0" * 50_000_000) + zeros.flush(zlib.Z_SYNC_FLUSH))[:-4]
    tracemalloc.start()
    try:
        for level, body in (
            (0, bomb),
            (0, run),
            (0, deep),
            (0, many),
            (1, inflated),
            (2, b"\xff" * 10),
            (2, b""),
        ):
            with pytest.raises((WeftFormatError, WeftLimitError)):
                WeftDecoder(engine=engine).decode(sealed(level, body))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * 2**20


def test_a_memory_stays_within_its_bound() -> None:
    encoder, decoder = WeftEncoder(), WeftDecoder()
    source = random.Random(1)
    for _ in range(15):
        parts: list[Event] = []
        for _ in range(400):
            name = Name(f"urn:{source.randrange(50)}", f"n{source.randrange(3000)}")
            key = attribute(Name("", f"k{source.randrange(9)}"), f"{source.random()}" * 8)
            parts += [start(name), key, comment("x" * 200), end(name)]
        events = document(*parts)
        assert decoder.decode(encoder.encode(events)) == events
        assert decoder.learned.memory.size < 6 * 2**20
    assert len(save_decoder(decoder)) < 8 * 2**20


def test_long_texts_are_not_coded_letter_by_letter() -> None:
    encoder, decoder = WeftEncoder(Level.MAX), WeftDecoder()
    texts = ["x" * 300_000, "".join(chr(32 + at * at % 90) for at in range(20_000)), "ä" * 200]
    for text in texts:
        events = document(*[content(text)] * 3, attribute(A, text))
        assert decoder.decode(encoder.encode(events)) == events
