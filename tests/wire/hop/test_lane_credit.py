"""A peer that stays within its windows is never refused, and no other fills the memory."""

from __future__ import annotations

import pytest

from lasthop.errors import CreditExceeded
from lasthop.wire.hop.frames import MAX_LANES, Ack, Credit, LaneClaim, LaneFrame
from lasthop.wire.hop.lane_credit import ROOM, LaneMeters

WINDOW = Credit(4, 100)


def test_each_lane_has_a_window_of_its_own() -> None:
    meters = LaneMeters(WINDOW)
    for lane in (2, 4):
        for seq in range(4):
            meters.take(lane, seq, 1)
    with pytest.raises(CreditExceeded, match="beyond its lane's window"):
        meters.take(2, 4, 1)


def test_an_acknowledgement_makes_room_in_its_lane() -> None:
    meters = LaneMeters(WINDOW, [LaneClaim(2, 10)])
    meters.take(2, 13, 1)
    meters.said(LaneFrame(2, Ack(14, 10)))
    meters.take(2, 17, 1)
    with pytest.raises(CreditExceeded):
        meters.take(2, 18, 1)


def test_a_window_of_a_lane_may_grow_and_is_never_taken_back() -> None:
    meters = LaneMeters(WINDOW)
    meters.said(LaneFrame(2, Credit(8, 100)))
    meters.said(LaneFrame(2, Credit(0, 0)))
    meters.take(2, 7, 1)
    with pytest.raises(CreditExceeded):
        meters.take(4, 7, 1)


def test_every_lane_has_room_for_a_message_beyond_the_session() -> None:
    meters = LaneMeters(WINDOW)
    for seq in range(4):
        meters.take(2, seq, 25)
    for n in range(2, MAX_LANES + 1):
        meters.take(2 * n, 0, ROOM)


def test_a_message_of_any_size_may_be_alone() -> None:
    meters = LaneMeters(WINDOW)
    size = 10 * MAX_LANES * ROOM
    meters.take(2, 0, size)
    meters.take(4, 0, 1)
    with pytest.raises(CreditExceeded, match="together"):
        meters.take(6, 0, size)


def test_all_lanes_together_are_bounded() -> None:
    meters = LaneMeters(Credit(4, 2**30))
    taken = [(2 * n, seq) for n in range(1, 18) for seq in range(4)]
    for lane, seq in taken:
        meters.take(lane, seq, 1)
    assert len(taken) == 4 + MAX_LANES
    with pytest.raises(CreditExceeded, match="together"):
        meters.take(36, 0, 1)


def test_what_comes_again_is_counted_once() -> None:
    meters = LaneMeters(WINDOW)
    for _ in range(1000):
        meters.take(2, 0, 25)


def test_lanes_that_were_not_used_for_long_are_forgotten() -> None:
    meters = LaneMeters(WINDOW)
    for n in range(1, 1000):
        meters.take(2 * n, 0, 1)
        meters.said(LaneFrame(2 * n, Ack(1, 1)))
    assert len(meters._lanes) <= 2 * MAX_LANES


def test_a_lane_that_begins_after_a_pause_may_use_what_was_granted_before() -> None:
    meters = LaneMeters(Credit(4, 1000))
    meters.grant(Credit(0, 0))
    for number in range(4):
        meters.take(2, number, 10)
    with pytest.raises(CreditExceeded):
        meters.take(2, 4, 10)
