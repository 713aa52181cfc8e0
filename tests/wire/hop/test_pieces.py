"""Units that are longer than a packet."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import FrameTooLarge, MalformedFrame
from lasthop.wire.hop.pieces import LAST, MORE, SMALLEST, Joiner, cut


@given(st.lists(st.binary(min_size=1, max_size=500)), st.integers(SMALLEST, 200))
def test_what_is_cut_is_joined(units: list[bytes], size: int) -> None:
    # No frame begins like a piece.
    units = [unit for unit in units if unit[0] not in (MORE, LAST)]
    joiner = Joiner()
    joined = []
    for unit in units:
        packets = cut(unit, size)
        assert all(0 < len(packet) <= size for packet in packets)
        assert len(packets) == 1 or sum(map(len, packets)) == len(unit) + len(packets)
        whole = [joiner.take(packet, most=500) for packet in packets]
        assert whole[:-1] == [None] * (len(packets) - 1)
        joined.append(whole[-1])
    assert joined == units


def test_a_unit_that_fits_is_sent_as_it_is() -> None:
    assert cut(b"12345", 5) == [b"12345"]
    assert cut(b"123456", 5) == [b"\x7f1234", b"\x7e56"]


def test_a_unit_is_not_interrupted() -> None:
    joiner = Joiner()
    joiner.take(b"\x7fabc", most=100)
    with pytest.raises(MalformedFrame, match="a whole unit came before the last piece of another"):
        joiner.take(b"\x01", most=100)


def test_a_unit_does_not_grow_without_end() -> None:
    joiner = Joiner()
    joiner.take(b"\x7f" + bytes(60), most=100)
    with pytest.raises(FrameTooLarge, match="a unit is too large"):
        joiner.take(b"\x7f" + bytes(60), most=100)
