"""The tests of lanes notice the mistakes that are easiest to make.

About `core/lane_set.py`, `core/outbound_lanes.py` and `core/inbound_lanes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lasthop.core.delivery import Delivery
from lasthop.core.dispatch import Dispatcher
from lasthop.core.feature import Decider
from lasthop.core.inbound_lanes import InboundLanes, InRecord
from lasthop.core.lane import Lane, LaneName
from lasthop.core.lane_set import Lanes
from lasthop.core.outbound_lanes import OpenLane, OutboundLanes
from lasthop.core.session import Session
from lasthop.errors import HopError
from tests.core import test_lane_set as lanes
from tests.core.lane_device import LaneDevice
from tests.core.rig import Rig

SEEDS = 60
"""Schedules in which a mistake is found at the latest."""

Check = Callable[[pytest.MonkeyPatch], None]


def in_some_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(SEEDS):
        with monkeypatch.context() as patched:
            lanes.test_nothing_is_lost_doubled_or_misordered(seed, patched)


def in_test(test: Callable[..., None], **more: Any) -> Check:
    def check(_: pytest.MonkeyPatch) -> None:
        rig = Rig(**lanes.LANES)
        device = LaneDevice(rig)
        device.dial()
        test(rig, device, **more)

    return check


def unbound_when_received(planted: pytest.MonkeyPatch) -> None:
    lane_of = OutboundLanes.lane_of

    def wrong(self: OutboundLanes[Any], name: LaneName | None) -> Lane[Any] | None:
        lane = self.bound.get(name) if name is not None else None
        if lane is not None and lane.outbound.received == lane.outbound.assigned:
            del self.bound[lane.name]
        return lane_of(self, name)

    planted.setattr(OutboundLanes, "lane_of", wrong)


def unfolded_when_received(planted: pytest.MonkeyPatch) -> None:
    lane_of = OutboundLanes.lane_of

    def wrong(self: OutboundLanes[Any], name: LaneName | None) -> Lane[Any] | None:
        if name is not None and self._default.outbound.received > self.folded.get(name, -1):
            self.folded.pop(name, None)
        return lane_of(self, name)

    planted.setattr(OutboundLanes, "lane_of", wrong)


def decisions_in_lane_0(planted: pytest.MonkeyPatch) -> None:
    lane = Decider.lane

    def wrong(self: Decider, delivery: Delivery) -> LaneName | None:
        return None if delivery.item.message.in_reply_to else lane(self, delivery)

    planted.setattr(Decider, "lane", wrong)


def numbers_of_lanes_used_again(planted: pytest.MonkeyPatch) -> None:
    remove = OutboundLanes.remove

    def wrong(self: OutboundLanes[Any], lane: OpenLane) -> None:
        remove(self, lane)
        self.next = min(self.next, lane.id >> 1)

    planted.setattr(OutboundLanes, "remove", wrong)


def closed_before_delivered(planted: pytest.MonkeyPatch) -> None:
    def wrong(self: OpenLane) -> bool:
        return self.last < 0 and self.outbound.received == self.outbound.assigned

    planted.setattr(OpenLane, "idle", property(wrong))


def finished_not_stored(planted: pytest.MonkeyPatch) -> None:
    planted.setattr(
        "lasthop.core.inbound_lanes.InRecord", lambda received, _: InRecord(received, ())
    )


def finished_dropped_at_hello(planted: pytest.MonkeyPatch) -> None:
    def wrong(self: InboundLanes) -> None:
        for numbers in self.open.values():
            numbers.drop_beyond()

    planted.setattr(InboundLanes, "drop_beyond", wrong)


def lane_0_rerouted_alone(planted: pytest.MonkeyPatch) -> None:
    reroute = Dispatcher.reroute

    def wrong(self: Dispatcher, session: Session, channel: int, now: int) -> None:
        kept, session.lanes = session.lanes, None
        reroute(self, session, channel, now)
        session.lanes = kept

    planted.setattr(Dispatcher, "reroute", wrong)


def nothing_said_of_an_earlier_epoch(planted: pytest.MonkeyPatch) -> None:
    planted.setattr(InboundLanes, "held_in", lambda *_: ())


def any_claim_fits(planted: pytest.MonkeyPatch) -> None:
    planted.setattr(Lanes, "fit", lambda *_: True)


def no_room_kept(planted: pytest.MonkeyPatch) -> None:
    planted.setattr("lasthop.core.outbound_lanes.ROOM", -1)


def room_of_its_own(_: pytest.MonkeyPatch) -> None:
    lanes.test_the_session_keeps_room_for_one_small_message_a_lane(Rig(**lanes.LANES))


without_order = lanes.test_a_lane_without_order_is_taken_as_it_comes_and_once

MISTAKES: list[tuple[Check, Check]] = [
    (unbound_when_received, in_some_schedule),
    (
        unfolded_when_received,
        in_test(lanes.test_beyond_64_lanes_names_are_folded_into_lane_0),
    ),
    (decisions_in_lane_0, in_test(lanes.test_a_release_leaves_in_the_lane_of_its_message)),
    (numbers_of_lanes_used_again, in_some_schedule),
    (closed_before_delivered, in_some_schedule),
    (finished_not_stored, in_test(without_order, crash=True)),
    (finished_dropped_at_hello, in_test(without_order, crash=False)),
    (
        lane_0_rerouted_alone,
        in_test(lanes.test_what_left_over_a_lost_channel_comes_again_in_its_lane),
    ),
    (
        nothing_said_of_an_earlier_epoch,
        in_test(lanes.test_in_a_new_epoch_the_device_hears_what_is_held_of_its_lanes),
    ),
    (any_claim_fits, in_test(lanes.test_a_device_that_has_seen_more_lanes_makes_a_new_epoch)),
    (no_room_kept, room_of_its_own),
]


@pytest.mark.parametrize(
    "plant, check", [pytest.param(*mistake, id=mistake[0].__name__) for mistake in MISTAKES]
)
def test_a_mistake_is_noticed(plant: Check, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, HopError, ValueError, KeyError)):
        check(monkeypatch)
