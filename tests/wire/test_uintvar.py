"""WAP's big-endian variable-length integers."""

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import Malformed
from lasthop.wire.uintvar import MAX_VALUE, encode_uintvar, read_uintvar


@pytest.mark.parametrize(
    "value,octets",
    [
        (0, "00"),
        (127, "7f"),
        (128, "8100"),
        (300, "822c"),
        (1400, "8a78"),
        (MAX_VALUE, "8fffffff7f"),
    ],
)
def test_known_values_have_known_octets(value: int, octets: str) -> None:
    data = bytes.fromhex(octets)
    assert encode_uintvar(value) == data
    assert read_uintvar(data, 0) == (value, len(data))
    assert read_uintvar(b"\xff" + data + b"\xff", 1) == (value, len(data) + 1)


@given(st.integers(0, MAX_VALUE))
def test_every_value_comes_back(value: int) -> None:
    data = encode_uintvar(value)
    assert read_uintvar(data, 0) == (value, len(data))
    for end in range(len(data)):
        with pytest.raises(Malformed, match="ends inside"):
            read_uintvar(data[:end], 0)


def test_a_longer_form_than_needed_is_read() -> None:
    assert read_uintvar(bytes.fromhex("808001"), 0) == (1, 3)


@pytest.mark.parametrize("octets", ["808080808001", "9080808000", "ffffffffff"])
def test_more_than_32_bits_are_refused(octets: str) -> None:
    with pytest.raises(Malformed, match="32 bits"):
        read_uintvar(bytes.fromhex(octets), 0)


@pytest.mark.parametrize("value", [-1, MAX_VALUE + 1])
def test_what_does_not_fit_is_not_written(value: int) -> None:
    with pytest.raises(ValueError, match="32 bits"):
        encode_uintvar(value)
