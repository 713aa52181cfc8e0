"""Units in bodies."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import HopError
from lasthop.wire.requests.bodies import BODY, UnitsToSend, unpack


@given(st.lists(st.binary(min_size=1, max_size=300)))
def test_what_is_packed_is_unpacked(units: list[bytes]) -> None:
    outgoing = UnitsToSend()
    outgoing.add(units)
    assert outgoing.size == sum(map(len, units))
    assert unpack(outgoing.pack()) == units
    assert outgoing.size == 0
    assert outgoing.pack() == b""


def test_a_body_stays_small_and_a_large_unit_is_alone() -> None:
    outgoing = UnitsToSend()
    units = [bytes(BODY // 2), bytes(BODY // 2), bytes(3 * BODY), b"last"]
    outgoing.add(units)
    bodies = []
    while outgoing:
        bodies.append(unpack(outgoing.pack()))
    assert [[len(unit) for unit in body] for body in bodies] == [
        [BODY // 2],
        [BODY // 2],
        [3 * BODY],
        [4],
    ]


@pytest.mark.parametrize(
    "body, message",
    [
        (b"\x05abc", "a body ends inside a unit"),
        (b"\x80", "the frame ends inside a number"),
        (b"\x81\x00a", "a number is not in its shortest form"),
    ],
)
def test_what_is_no_body_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(HopError, match=message):
        unpack(body)


@given(st.binary(max_size=200))
def test_any_bytes_are_units_or_refused(body: bytes) -> None:
    try:
        units = unpack(body)
    except HopError:
        return
    assert sum(map(len, units)) <= len(body)
