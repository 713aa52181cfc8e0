"""Texts in the alphabets of short messages, packed and unpacked."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import Malformed, NotTransformable
from lasthop.wire.sms.alphabets import (
    Alphabet,
    alphabet_of,
    decode_text,
    encode_text,
    pack,
    unpack,
)

ALL = "".join(decode_text(bytes((n,)), Alphabet.GSM) for n in range(128) if n != 0x1B)
EXTENDED = "\f^{}\\[~]|€"


def test_every_character_of_the_default_alphabet_comes_back() -> None:
    assert len(set(ALL)) == 127
    assert encode_text(ALL, Alphabet.GSM) == bytes(n for n in range(128) if n != 0x1B)
    assert decode_text(encode_text(EXTENDED, Alphabet.GSM), Alphabet.GSM) == EXTENDED
    assert encode_text("€", Alphabet.GSM) == b"\x1b\x65"


@pytest.mark.parametrize(
    "text, alphabet",
    [
        ("Plain text @ 5 £", Alphabet.GSM),
        ("100 €", Alphabet.GSM),
        ("Привет", Alphabet.UCS2),
        ("ç", Alphabet.UCS2),
        ("", Alphabet.GSM),
        ("😀", Alphabet.UCS2),
    ],
)
def test_a_text_takes_the_cheapest_alphabet_that_has_it(text: str, alphabet: Alphabet) -> None:
    assert alphabet_of(text) is alphabet
    assert decode_text(encode_text(text, alphabet), alphabet) == text


def test_what_an_alphabet_lacks_is_refused() -> None:
    with pytest.raises(NotTransformable, match="lacks"):
        encode_text("ж", Alphabet.GSM)
    with pytest.raises(NotTransformable, match="lacks"):
        encode_text("ж", Alphabet.LATIN)
    with pytest.raises(NotTransformable, match="lacks"):
        encode_text("\ud800", Alphabet.UCS2)
    with pytest.raises(NotTransformable, match="lacks"):
        encode_text("x", Alphabet.OCTETS)


def test_what_is_no_text_is_refused_and_where() -> None:
    with pytest.raises(Malformed) as bad:
        decode_text(b"ab\x80", Alphabet.GSM)
    assert bad.value.fields["offset"] == 2
    with pytest.raises(Malformed):
        decode_text(b"\xd8\x00\x00", Alphabet.UCS2)
    with pytest.raises(Malformed):
        decode_text(b"x", Alphabet.OCTETS)


def test_an_unknown_extension_is_shown_from_the_basic_table() -> None:
    assert decode_text(b"\x1bA\x1b\x1b.", Alphabet.GSM) == "A."
    assert decode_text(b"a\x1b", Alphabet.GSM) == "a"


def test_hello_is_packed_as_everybody_does() -> None:
    assert pack(encode_text("hellohello", Alphabet.GSM)).hex() == "e8329bfd4697d9ec37"


@given(st.text(ALL + EXTENDED, max_size=200), st.integers(0, 6))
def test_septets_come_back_from_octets(text: str, fill: int) -> None:
    septets = encode_text(text, Alphabet.GSM)
    packed = pack(septets, fill=fill)
    assert len(packed) == (fill + 7 * len(septets) + 7) // 8
    assert unpack(packed, len(septets), fill=fill) == septets
    assert decode_text(septets, Alphabet.GSM) == text


def test_octets_that_are_too_few_are_refused() -> None:
    with pytest.raises(Malformed):
        unpack(b"\xe8", 2)
