"""Numbers survive the wire, in one form only."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import MalformedFrame
from lasthop.wire.varint import MAX_BYTES, MAX_VALUE, encode_varint, read_varint

VECTORS = json.loads(Path("vectors/hop/varint.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["bytes"])
def test_vectors_hold_in_both_directions(case: dict[str, str]) -> None:
    data = bytes.fromhex(case["bytes"])
    if "error" in case:
        with pytest.raises(MalformedFrame) as caught:
            read_varint(data, 0)
        assert caught.value.detail == case["detail"]
    else:
        assert encode_varint(int(case["value"])) == data
        assert read_varint(data, 0) == (int(case["value"]), len(data))


@given(st.integers(0, MAX_VALUE), st.binary(max_size=4), st.binary(max_size=4))
def test_a_number_is_found_between_other_bytes(value: int, before: bytes, after: bytes) -> None:
    encoded = encode_varint(value)
    assert len(encoded) <= MAX_BYTES
    assert read_varint(before + encoded + after, len(before)) == (value, len(before + encoded))


@given(st.binary(max_size=12))
def test_whatever_is_read_is_written_the_same_way(data: bytes) -> None:
    try:
        value, end = read_varint(data, 0)
    except MalformedFrame:
        return
    assert encode_varint(value) == data[:end]


@pytest.mark.parametrize("value", [-1, MAX_VALUE + 1])
def test_a_number_out_of_range_is_not_written(value: int) -> None:
    with pytest.raises(ValueError, match="at most 63 bits"):
        encode_varint(value)
