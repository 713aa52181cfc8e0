"""Datagrams and texts cut into short messages, and put together again in any order."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import SECOND
from lasthop.errors import Malformed, TooLarge
from lasthop.wire.sms.alphabets import Alphabet, decode_text
from lasthop.wire.sms.header import Part, Ports, UserHeader
from lasthop.wire.sms.segments import (
    MAX_WAITING,
    ROOM,
    WAITS_FOR,
    Reassembly,
    SmsSegment,
    read_segment,
    split_datagram,
    split_text,
)

PUSH = Ports(2948, 9200)
VECTORS: list[dict[str, Any]] = json.loads(Path("vectors/sms/datagrams.json").read_text())["cases"]


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: str(case["name"]))
def test_datagrams_are_cut_as_phones_expect(case: dict[str, Any]) -> None:
    datagram = bytes.fromhex(case["datagram"])
    segments = split_datagram(datagram, PUSH, case["reference"], wide=case["wide"])
    assert [segment.user_data.hex() for segment in segments] == case["user_data"]
    whole = Reassembly()
    found = [
        whole.add("me", s.header, s.content, 0)
        for s in (
            read_segment(bytes.fromhex(o), Alphabet.OCTETS, headed=True) for o in case["user_data"]
        )
    ]
    assert found[-1] == datagram
    assert not any(found[:-1])
    assert len(whole) == 0


@pytest.mark.parametrize(
    "size, narrow, wide",
    [(0, 1, 1), (133, 1, 1), (134, 2, 2), (256, 2, 3), (254, 2, 2), (32_640, 255, 258)],
)
def test_the_number_of_messages_is_known(size: int, narrow: int, wide: int) -> None:
    assert len(split_datagram(bytes(size), PUSH, 1)) == narrow
    if wide <= 255:
        assert len(split_datagram(bytes(size), PUSH, 1, wide=True)) == wide
    else:
        with pytest.raises(TooLarge):
            split_datagram(bytes(size), PUSH, 1, wide=True)


def test_there_is_a_limit_to_the_number_of_messages() -> None:
    with pytest.raises(TooLarge, match="too many short messages"):
        split_datagram(bytes(500), PUSH, 1, most=3)
    with pytest.raises(TooLarge):
        split_datagram(bytes(32_641), PUSH, 1)


@given(
    st.binary(max_size=2000),
    st.integers(0, 0xFFFF),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_parts_come_together_in_any_order(
    datagram: bytes, reference: int, wide: bool, random: Random
) -> None:
    segments = split_datagram(datagram, PUSH, reference, wide=wide)
    assert all(len(segment.user_data) <= ROOM for segment in segments)
    random.shuffle(segments)
    whole = Reassembly()
    found = [whole.add("me", s.header, s.content, 0) for s in segments]
    assert found[-1] == datagram
    assert found[:-1] == [None] * (len(segments) - 1)


@given(st.text(max_size=700), st.booleans())
def test_texts_come_together_and_no_character_is_cut(text: str, wide: bool) -> None:
    segments = split_text(text, 5, wide=wide)
    whole = Reassembly()
    found = [whole.add("me", s.header, s.content, 0) for s in segments]
    assert found[-1] is not None
    assert decode_text(found[-1], segments[0].alphabet) == text
    for segment in segments:
        decode_text(segment.content, segment.alphabet)
        header = 8 * len(segment.header.encode())
        if segment.alphabet is Alphabet.GSM:
            assert header + -(-header // 7) * 0 + 7 * len(segment.content) <= 8 * ROOM
        else:
            assert len(segment.user_data) <= ROOM


def test_a_text_takes_as_many_messages_as_people_know() -> None:
    assert len(split_text("x" * 160, 1)) == 1
    assert [len(s.content) for s in split_text("x" * 161, 1)] == [153, 8]
    assert [len(s.content) for s in split_text("x" * 161, 1, wide=True)] == [152, 9]
    assert len(split_text("ж" * 70, 1)) == 1
    assert [len(s.content) for s in split_text("ж" * 71, 1)] == [134, 8]
    # An escape and what it escapes stay together, and so do two surrogates.
    assert [len(s.content) for s in split_text("x" * 152 + "€" * 10, 1)] == [152, 20]
    assert [len(s.content) for s in split_text("ж" * 66 + "😀" * 10, 1)] == [132, 40]
    assert len(split_text("x" * 140, 1, alphabet=Alphabet.LATIN)) == 1
    assert [len(s.content) for s in split_text("x" * 141, 1, alphabet=Alphabet.LATIN)] == [134, 7]


def test_parts_of_different_messages_do_not_mix() -> None:
    whole = Reassembly()
    first, second = split_datagram(bytes(200), PUSH, 9)
    assert whole.add("me", first.header, first.content, 0) is None
    assert whole.add("you", second.header, second.content, 0) is None
    other = UserHeader(Part(9, 3, 2), PUSH)
    assert whole.add("me", other, b"of three", 0) is None, "a new message with the old reference"
    assert whole.add("me", second.header, second.content, 0) is None


def test_a_part_twice_counts_once() -> None:
    whole = Reassembly()
    first, second = split_datagram(bytes(200), PUSH, 9)
    assert whole.add("me", first.header, first.content, 0) is None
    assert whole.add("me", first.header, first.content, 0) is None
    assert whole.add("me", second.header, second.content, 0) == bytes(200)


def test_what_never_comes_whole_is_forgotten() -> None:
    whole = Reassembly()
    first, second = split_datagram(bytes(200), PUSH, 9)
    whole.add("me", first.header, first.content, 0)
    assert whole.add("me", second.header, second.content, WAITS_FOR) is None
    for n in range(2 * MAX_WAITING):
        whole.add(n, first.header, first.content, WAITS_FOR + SECOND)
    assert len(whole) == MAX_WAITING


def test_user_data_without_a_header_is_all_content() -> None:
    plain = read_segment(b"hi", Alphabet.GSM, headed=False)
    assert plain == SmsSegment(Alphabet.GSM, b"hi")
    assert Reassembly().add("me", plain.header, plain.content, 0) == b"hi"
    with pytest.raises(Malformed):
        read_segment(b"\x06\x05", Alphabet.OCTETS, headed=True)
