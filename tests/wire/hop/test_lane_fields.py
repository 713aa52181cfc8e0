"""What a handshake says of lanes comes back, and fits even at its largest."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import MalformedFrame
from lasthop.wire.hop import lane_fields
from lasthop.wire.hop.frames import (
    MAX_HANDSHAKE,
    MAX_LANES,
    MAX_RANGES,
    LaneClaim,
    LaneClaims,
    Ranges,
)
from tests.wire.hop import strategies


@given(strategies.claims_of_lanes(delivered=True))
def test_what_a_hello_claims_comes_back(claims: LaneClaims) -> None:
    kind = lane_fields.LANES_IN_HELLO
    assert kind.read(kind.write(claims)) == claims


@given(strategies.claims_of_lanes(delivered=False))
def test_what_a_welcome_claims_comes_back(claims: LaneClaims) -> None:
    kind = lane_fields.LANES_IN_WELCOME
    assert kind.read(kind.write(claims)) == claims


@given(st.sets(st.integers(1, 2**40), max_size=MAX_LANES), strategies.ranges_above(-1, least=1))
def test_numbers_by_lane_come_back(lanes: set[int], ranges: Ranges) -> None:
    ids = tuple(2 * lane for lane in sorted(lanes))
    assert lane_fields.LANE_IDS.read(lane_fields.LANE_IDS.write(ids)) == ids
    counts = tuple((lane, lane * 3) for lane in ids)
    assert lane_fields.LANE_COUNTS.read(lane_fields.LANE_COUNTS.write(counts)) == counts
    dropped = tuple((lane, ranges) for lane in ids[:50])
    assert lane_fields.LANE_DROPPED.read(lane_fields.LANE_DROPPED.write(dropped)) == dropped


@given(st.binary(max_size=60))
def test_garbage_is_malformed_or_understood(data: bytes) -> None:
    for kind in (
        lane_fields.LANES_IN_HELLO,
        lane_fields.LANES_IN_WELCOME,
        lane_fields.LANE_IDS,
        lane_fields.LANE_COUNTS,
        lane_fields.LANE_DROPPED,
        lane_fields.LANE_HELD,
    ):
        try:
            value = kind.read(data)
        except MalformedFrame:
            continue
        assert kind.read(kind.write(value)) == value


def test_the_largest_claim_fits_into_a_handshake() -> None:
    far = 2**40
    gaps = tuple((far + 5000 * n, far + 5000 * n + 300) for n in range(1, 5))
    lanes = tuple(LaneClaim(2 * n, far, 0, gaps) for n in range(far, far + MAX_LANES))
    claims = LaneClaims(far + MAX_LANES, lanes)
    written = lane_fields.LANES_IN_HELLO.write(claims)
    assert sum(len(claim.individual) for claim in lanes) == MAX_RANGES
    assert len(written) < MAX_HANDSHAKE // 4
    assert lane_fields.LANES_IN_HELLO.read(written) == claims


def test_idle_lanes_take_five_bytes_each() -> None:
    lanes = tuple(LaneClaim(2 * n, 300, 300) for n in range(1, MAX_LANES + 1))
    written = lane_fields.LANES_IN_HELLO.write(LaneClaims(MAX_LANES + 1, lanes))
    assert len(written) <= 5 * MAX_LANES + 2


def test_more_ranges_than_a_field_may_have_are_refused() -> None:
    gaps = tuple((2 * n, 2 * n + 1) for n in range(1, 200))
    lanes = tuple(LaneClaim(2 * n, 0, 0, gaps) for n in range(1, 4))
    written = lane_fields.LANES_IN_HELLO.write(LaneClaims(9, lanes))
    with pytest.raises(MalformedFrame, match="more ranges of lanes"):
        lane_fields.LANES_IN_HELLO.read(written)


def test_what_is_held_of_an_earlier_epoch_comes_back() -> None:
    held = ((2, 5, ()), (5, 3, ((4, 6), (9, 10))), (7, 0, ()))
    kind = lane_fields.LANE_HELD
    assert kind.read(kind.write(held)) == held
    with pytest.raises(ValueError, match="only a lane without order"):
        kind.write(((2, 5, ((6, 7),)),))


def test_finished_numbers_of_an_ordered_lane_are_the_callers_fault() -> None:
    claims = LaneClaims(9, (LaneClaim(2, 1, 1, (), ((2, 3),)),))
    with pytest.raises(ValueError, match="only a lane without order"):
        lane_fields.LANES_IN_HELLO.write(claims)
