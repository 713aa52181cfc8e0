"""User data headers: ports, parts, and what is to be ignored."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.sms.header import Part, Ports, UserHeader, decode_header

PUSH = Ports(2948, 9200)
numbers = st.integers(0, 0xFFFF)
parts = st.builds(
    lambda total, number, reference, wide: Part(
        reference if wide else reference & 0xFF, total, 1 + number % total, wide
    ),
    st.integers(1, 255),
    st.integers(0, 254),
    numbers,
    st.booleans(),
)
others = st.lists(st.tuples(st.integers(0x20, 0xFF), st.binary(max_size=12)), max_size=3).map(tuple)


@pytest.mark.parametrize(
    "header, octets",
    [
        (UserHeader(ports=PUSH), "0605040b8423f0"),
        (UserHeader(Part(0x5A, 2, 1), PUSH), "0b00035a020105040b8423f0"),
        (UserHeader(Part(0x1234, 2, 1, wide=True), PUSH), "0c08041234020105040b8423f0"),
        (UserHeader(Part(7, 3, 2)), "050003070302"),
        (UserHeader(), ""),
    ],
)
def test_headers_are_written_as_phones_read_them(header: UserHeader, octets: str) -> None:
    assert header.encode().hex() == octets
    if octets:
        assert decode_header(bytes.fromhex(octets) + b"rest") == (header, len(octets) // 2)


@given(st.none() | parts, st.none() | st.builds(Ports, numbers, numbers), others)
def test_every_header_comes_back(
    part: Part | None, ports: Ports | None, more: tuple[tuple[int, bytes], ...]
) -> None:
    header = UserHeader(part, ports, more)
    octets = header.encode()
    if octets:
        assert decode_header(octets) == (header, len(octets))


def test_narrow_ports_are_read() -> None:
    assert decode_header(bytes.fromhex("0404 02 f5 f0")) == (UserHeader(ports=Ports(245, 240)), 5)


@pytest.mark.parametrize("octets", ["0500035a0003", "0500035a0200", "0500035a0203", "04000201 01"])
def test_a_part_that_cannot_be_is_ignored(octets: str) -> None:
    assert decode_header(bytes.fromhex(octets))[0] == UserHeader()


def test_of_two_elements_of_a_kind_the_last_counts() -> None:
    assert decode_header(bytes.fromhex("0a0003010201 0003020202"))[0].part == Part(2, 2, 2)


@pytest.mark.parametrize("octets", ["", "06", "060504", "0305040b", "0100"])
def test_a_header_that_ends_early_is_refused(octets: str) -> None:
    with pytest.raises(Malformed):
        decode_header(bytes.fromhex(octets))


def test_a_header_that_fills_the_message_is_refused() -> None:
    with pytest.raises(TooLarge):
        UserHeader(others=((0x70, bytes(140)),)).encode()
    with pytest.raises(TooLarge):
        UserHeader(others=((0x70, bytes(300)),)).encode()
