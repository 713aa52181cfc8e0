"""Lanes beside lane 0: who shares one and what passes what; nothing is lost, doubled or
misordered."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from lasthop.clock import SECOND
from lasthop.core.lifecycle import State
from lasthop.core.outbound_lanes import FULL, IDLE
from lasthop.core.session import Session
from lasthop.message import Binding
from lasthop.wire.hop.frames import (
    MAX_LANES,
    Ack,
    Credit,
    Feature,
    LaneFrame,
    Last,
    MessageFrame,
)
from tests.core.lane_device import LaneDevice
from tests.core.rig import APP, Rig, publication, to

LANES: dict[str, Any] = {"lanes": True}


@pytest.fixture
def rig() -> Rig:
    return Rig(**LANES)


@pytest.fixture
def device(rig: Rig) -> LaneDevice:
    device = LaneDevice(rig)
    device.dial()
    return device


def session_of(rig: Rig) -> Session:
    return rig.gateway.deliveries.named(APP, "phone")


def lanes_of(rig: Rig, channel: int) -> list[tuple[int, int | None]]:
    return [(frame.lane, frame.seq) for frame in rig.messages(channel)]


# Which lane.


def test_what_has_no_queue_and_no_priority_stays_in_lane_0(rig: Rig, device: LaneDevice) -> None:
    rig.publish(to("phone"), to("phone"))
    rig.run()
    assert lanes_of(rig, device.channel) == [(0, 0), (0, 1)]


def test_a_queue_and_a_priority_have_lanes_of_their_own(rig: Rig, device: LaneDevice) -> None:
    rig.publish(to("phone", queue="a"), to("phone", priority=7), to("phone", queue="a"))
    rig.run()
    rig.publish(to("phone", queue="a", priority=7))
    rig.run()
    assert lanes_of(rig, device.channel) == [(2, 0), (4, 0), (4, 1), (6, 0)]


def test_whoever_sends_shares_the_lane(rig: Rig, device: LaneDevice) -> None:
    rig.publish(to("phone", queue="a"))
    rig.publish(to("phone", queue="a"), source="publisher:other")
    rig.run()
    assert lanes_of(rig, device.channel) == [(2, 0), (2, 1)]


def test_a_device_without_the_feature_has_lane_0_only(rig: Rig) -> None:
    channel = rig.connect()
    rig.publish(to("phone", queue="a"), to("phone", priority=9))
    rig.run()
    assert {lane for lane, _ in lanes_of(rig, channel)} == {0}
    assert not rig.welcome(channel).features & Feature.LANES


def test_a_gateway_does_not_offer_lanes_by_itself() -> None:
    rig = Rig()
    channel = rig.connect(features=Feature.LANES)
    rig.publish(to("phone", queue="a"))
    rig.run()
    assert lanes_of(rig, channel) == [(0, 0)]
    assert not rig.welcome(channel).features & Feature.LANES


# What passes what.


def test_a_lane_without_credit_holds_up_no_other(rig: Rig) -> None:
    device = LaneDevice(rig, window=Credit(4, 10_000))
    device.dial()
    rig.publish(*(to("phone", queue="bulk") for _ in range(10)))
    rig.run()
    device.hear()
    rig.publish(to("phone", priority=9, body=b"urgent"))
    rig.run()
    assert rig.bodies(device.channel)[-1] == b"urgent"
    assert len(rig.bodies(device.channel)) == 5


def test_the_session_keeps_room_for_one_small_message_a_lane(rig: Rig) -> None:
    device = LaneDevice(rig, window=Credit(2, 100))
    device.dial()
    for queue in "abc":
        rig.publish(*(to("phone", queue=queue, body=bytes(50)) for _ in range(4)))
        rig.run()
    assert sorted(lanes_of(rig, device.channel)) == [(2, 0), (2, 1), (4, 0), (6, 0)]
    rig.publish(to("phone", queue="d", body=bytes(17_000)))
    rig.run()
    assert len(rig.messages(device.channel)) == 4
    device.round()
    assert len(device.shown) == 13


def test_a_lane_that_the_device_pauses_waits_alone(rig: Rig, device: LaneDevice) -> None:
    rig.publish(to("phone", queue="a"), to("phone", queue="b"))
    rig.run()
    device.hear()
    device.say(LaneFrame(2, Credit(0, 0)))
    rig.publish(to("phone", queue="a", body=b"paused"), to("phone", queue="b", body=b"goes"))
    rig.run()
    assert rig.bodies(device.channel)[-1] == b"goes"
    device.say(LaneFrame(2, Credit(4, 1000)))
    assert rig.bodies(device.channel)[-1] == b"paused"


def test_a_pause_of_the_session_pauses_every_lane(rig: Rig, device: LaneDevice) -> None:
    device.say(Credit(0, 0))
    rig.publish(to("phone", queue="a"), to("phone"), to("phone", priority=9))
    rig.run()
    assert rig.messages(device.channel) == []


def test_a_lane_is_acknowledged_apart(rig: Rig, device: LaneDevice) -> None:
    keys = rig.publish(to("phone", queue="a"), to("phone"))
    rig.run()
    device.say(LaneFrame(2, Ack(1, 1)))
    assert [rig.state(key) for key in keys] == [State.DELIVERED, State.SENDING]


# Binding and folding.


def test_a_name_keeps_its_lane_until_everything_is_delivered(rig: Rig, device: LaneDevice) -> None:
    rig.publish(to("phone", queue="a"))
    rig.run()
    device.say(LaneFrame(2, Ack(1, 0)))
    rig.pass_time(2 * IDLE)
    rig.publish(to("phone", queue="a"))
    rig.run()
    assert lanes_of(rig, device.channel) == [(2, 0), (2, 1)]


def test_what_was_in_lane_0_is_not_overtaken_when_lanes_come(rig: Rig) -> None:
    device = LaneDevice(rig)
    device.dial(features=0)
    rig.publish(to("phone", queue="a"))
    rig.run()
    device.hear()
    device.lose()
    device.dial()
    rig.publish(to("phone", queue="a"), to("phone", queue="b"))
    rig.run()
    assert {lane for lane, _ in lanes_of(rig, device.channel)} == {0}
    device.round()
    rig.publish(to("phone", queue="a"))
    rig.run()
    assert lanes_of(rig, device.channel)[-1] == (2, 0)


def test_beyond_64_lanes_names_are_folded_into_lane_0(rig: Rig, device: LaneDevice) -> None:
    rig.publish(*(to("phone", queue=f"q{n}") for n in range(MAX_LANES + 1)))
    rig.run()
    assert len(session_of(rig).lanes.out.open) == MAX_LANES  # type: ignore[union-attr]
    assert lanes_of(rig, device.channel)[-1] == (0, 0)
    said = [event for event in rig.events() if event["kind"] == "released"]
    assert [event.get("lane", 0) for event in said][-2:] == [2 * MAX_LANES, 0]
    assert said[-1]["reason"].endswith(FULL)
    rig.publish(to("phone", queue=f"q{MAX_LANES}"))
    rig.run()
    device.hear()
    while device.waiting[0][0]:
        device.finish()
    device.acknowledge()
    device.hear()
    device.acknowledge()
    assert len(session_of(rig).lanes.out.open) == MAX_LANES - 1  # type: ignore[union-attr]
    rig.publish(to("phone", queue=f"q{MAX_LANES}"))
    rig.run()
    assert lanes_of(rig, device.channel)[-1] == (0, 2), "its first message is not delivered yet"
    device.round()
    rig.publish(to("phone", queue=f"q{MAX_LANES}"))
    rig.run()
    assert lanes_of(rig, device.channel)[-1] == (2 * (MAX_LANES + 1), 0)


# Closing.


def test_an_idle_lane_closes_and_its_number_is_not_used_again(rig: Rig, device: LaneDevice) -> None:
    rig.publish(to("phone", queue="a"))
    rig.run()
    device.round()
    rig.pass_time(IDLE - SECOND)
    assert not any(isinstance(frame, LaneFrame) for frame in rig.sent[device.channel])
    rig.pass_time(SECOND)
    assert rig.sent[device.channel][-1] == LaneFrame(2, Last(1))
    device.round()
    assert not session_of(rig).lanes.out.open  # type: ignore[union-attr]
    rig.publish(to("phone", queue="a"))
    rig.run()
    assert lanes_of(rig, device.channel)[-1] == (4, 0)


def test_a_lane_that_closes_takes_no_more(rig: Rig, device: LaneDevice) -> None:
    rig.publish(to("phone", queue="a"))
    rig.run()
    device.round()
    rig.pass_time(IDLE)
    rig.publish(to("phone", queue="a"))
    rig.run()
    assert lanes_of(rig, device.channel)[-1] == (4, 0)


def test_an_idle_session_that_is_away_has_lane_0_only(rig: Rig, device: LaneDevice) -> None:
    rig.publish(to("phone", queue="a"))
    rig.run()
    device.round()
    device.lose()
    assert not session_of(rig).lanes.out.open  # type: ignore[union-attr]
    welcome = device.dial()
    assert welcome is not None
    assert welcome.resumed
    assert welcome.sending == ()
    assert set(device.inbound) == {0}
    rig.publish(to("phone", queue="a"))
    rig.run()
    assert lanes_of(rig, device.channel) == [(4, 0)]


# Coming back.


@pytest.mark.parametrize("crash", [False, True])
def test_what_is_under_way_in_lanes_comes_again(rig: Rig, device: LaneDevice, crash: bool) -> None:
    keys = rig.publish(to("phone", queue="a"), to("phone", queue="b"), to("phone"))
    rig.run()
    device.hear(1)
    device.lose()
    if crash:
        rig.crash()
    welcome = device.dial()
    assert welcome is not None
    assert welcome.resumed
    assert sorted(lanes_of(rig, device.channel)) == [(0, 0), (4, 0)] or crash
    device.round()
    assert len(device.shown) == 3
    assert {rig.state(key) for key in keys} == {State.DELIVERED}


def test_what_left_over_a_lost_channel_comes_again_in_its_lane(
    rig: Rig, device: LaneDevice
) -> None:
    device.dial(join=True)
    first, second = device.channels
    rig.publish(to("phone", queue="a"), to("phone"))
    rig.run()
    assert lanes_of(rig, second) == [(2, 0), (0, 0)]
    device.lose(second)
    assert sorted(lanes_of(rig, first)) == [(0, 0), (2, 0)]


def test_what_is_not_acknowledged_is_sent_again_in_its_lane(rig: Rig) -> None:
    device = LaneDevice(rig)
    device.dial(reliable=False)
    rig.publish(to("phone", queue="a"), to("phone", queue="b"))
    rig.run()
    device.say(LaneFrame(2, Ack(1, 1)))
    rig.pass_time(3 * SECOND)
    assert lanes_of(rig, device.channel) == [(2, 0), (4, 0), (4, 0)]


def test_a_device_that_has_seen_more_lanes_makes_a_new_epoch(rig: Rig, device: LaneDevice) -> None:
    device.seen = 9
    device.closed.add(1, 9)
    device.lose()
    welcome = device.dial()
    assert welcome is not None
    assert not welcome.resumed


def test_a_device_that_lost_a_lane_makes_a_new_epoch(rig: Rig, device: LaneDevice) -> None:
    rig.publish(to("phone", queue="a"))
    rig.run()
    device.hear()
    device.closed.add(1, 2)
    del device.inbound[2]
    device.lose()
    welcome = device.dial()
    assert welcome is not None
    assert not welcome.resumed
    device.round()
    assert len(device.shown) == 1


def test_an_older_copy_of_the_gateway_uses_no_number_of_a_lane_again(
    rig: Rig, device: LaneDevice
) -> None:
    rig.publish(to("phone", queue="a"))
    rig.run()
    device.hear()
    device.inbound[2].receive(7, MessageFrame(7, 99, lane=2))
    device.lose()
    welcome = device.dial()
    assert welcome is not None
    assert not welcome.resumed


def test_without_the_feature_a_new_epoch_has_everything_in_lane_0(
    rig: Rig, device: LaneDevice
) -> None:
    rig.publish(to("phone", queue="a"), to("phone", queue="b"))
    rig.run()
    device.hear(1)
    device.lose()
    welcome = device.dial(features=0, lanes=None)
    assert welcome is not None
    assert not welcome.resumed
    assert not welcome.features & Feature.LANES
    device.round()
    assert len(device.shown) == 2


def test_a_join_has_the_answer_of_the_first_channel(rig: Rig, device: LaneDevice) -> None:
    assert device.dial(join=True) is not None
    assert device.dial(join=True, features=0) is None
    assert rig.disconnected[-1].reason == "there is no contact to join"


# What a device sends.


def up(lane: int, seq: int, body: bytes = b"up") -> MessageFrame:
    frame = publication(seq, body, target="device:tablet")
    return MessageFrame(seq, 1000 * lane + seq, None, frame.headers, body, lane=lane)


def tablet_got(rig: Rig) -> list[bytes]:
    rig.run()
    return rig.bodies(rig.connect("tablet"))


def test_lanes_of_a_device_are_ordered_each_for_itself(rig: Rig, device: LaneDevice) -> None:
    rig.lose(rig.connect("tablet"))
    device.say(up(2, 1, b"second"), up(4, 0, b"other"))
    device.say(up(2, 0, b"first"))
    frames = [frame for frame in rig.sent[device.channel] if isinstance(frame, LaneFrame)]
    assert frames == [
        LaneFrame(2, Ack(0, 0)),
        LaneFrame(4, Ack(1, 1)),
        LaneFrame(2, Ack(2, 2)),
    ]
    assert tablet_got(rig) == [b"other", b"first", b"second"]


@pytest.mark.parametrize("crash", [False, True])
def test_a_lane_without_order_is_taken_as_it_comes_and_once(
    rig: Rig, device: LaneDevice, crash: bool
) -> None:
    rig.lose(rig.connect("tablet"))
    device.say(up(3, 2, b"c"), up(3, 0, b"a"), up(3, 2, b"c"))
    device.lose()
    if crash:
        rig.crash()
    welcome = device.dial(sending=(3,))
    assert welcome is not None
    assert welcome.lanes is not None
    (claim,) = welcome.lanes.lanes
    assert (claim.received, claim.individual, claim.finished) == (1, ((2, 3),), ((2, 3),))
    device.say(up(3, 2, b"c"), up(3, 1, b"b"))
    assert tablet_got(rig) == [b"c", b"a", b"b"]


def test_what_a_lost_channel_acknowledged_is_acknowledged_again(
    rig: Rig, device: LaneDevice
) -> None:
    device.dial(join=True)
    first, second = device.channels
    device.say(up(2, 0), up(5, 1))
    acks = [LaneFrame(2, Ack(1, 1)), LaneFrame(5, Ack(0, 0, ((1, 2),), ((1, 2),)))]
    assert [frame for frame in rig.sent[second] if isinstance(frame, LaneFrame)] == acks
    device.lose(second)
    assert [frame for frame in rig.sent[first] if isinstance(frame, LaneFrame)] == acks


def test_a_lane_of_a_device_closes_once(rig: Rig, device: LaneDevice) -> None:
    device.say(up(2, 0))
    device.say(LaneFrame(2, Last(1)))
    device.say(LaneFrame(2, Last(1)), up(2, 0))
    frames = [frame for frame in rig.sent[device.channel] if isinstance(frame, LaneFrame)]
    assert frames[1:] == [LaneFrame(2, Ack(2, 2))] * 2
    device.lose()
    welcome = device.dial()
    assert welcome is not None
    assert welcome.lanes is not None
    assert (welcome.lanes.seen, welcome.lanes.lanes) == (2, ())


@pytest.mark.parametrize(
    "frames",
    [
        [up(2 * n, 0) for n in range(1, MAX_LANES + 2)],
        [up(2 << 40, 0)],
        [up(3, 600)],
        [up(2, 0), LaneFrame(2, Last(2))],
        [up(2, 0), up(3, 0)],
    ],
)
def test_what_no_device_may_do_closes_the_channel(
    rig: Rig, device: LaneDevice, frames: list[Any]
) -> None:
    device.say(*frames)
    assert rig.disconnected


def test_in_a_new_epoch_the_device_hears_what_is_held_of_its_lanes(
    rig: Rig, device: LaneDevice
) -> None:
    device.say(up(2, 0), up(5, 1))
    device.lose()
    device.seen = 9
    device.closed.add(1, 9)
    welcome = device.dial()
    assert welcome is not None
    assert not welcome.resumed
    assert [*welcome.lane_superseded] == [(2, 1, ()), (5, 0, ((1, 2),))]


# Words about messages.


def test_a_release_leaves_in_the_lane_of_its_message(rig: Rig, device: LaneDevice) -> None:
    device.say(MessageFrame(0, 1, None, publication(0, target="group:crew", operation=9).headers))
    before = rig.now + 100 * SECOND
    rig.publish(to("group:crew", queue="a", binding=Binding.ATOMIC, deliver_before=before))
    rig.run()
    assert lanes_of(rig, device.channel) == [(2, 0)]
    device.say(LaneFrame(2, Ack(1, 1)))
    rig.run()
    assert lanes_of(rig, device.channel) == [(2, 0), (2, 1)]


# Everything at once.


NAMES: list[dict[str, Any]] = [
    {},
    {"queue": "a"},
    {"queue": "b"},
    {"queue": "b", "priority": 8},
    {"priority": 9},
    {"queue": "loose"},
]


@pytest.mark.parametrize("seed", range(int(os.environ.get("LASTHOP_LANE_SCHEDULES", "40"))))
def test_nothing_is_lost_doubled_or_misordered(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr("lasthop.core.outbound_lanes.MAX_LANES", random.choice([2, 3, 64]))
    window = random.choice([None, Credit(3, 1000), Credit(8, 10_000)])
    rig = Rig(**LANES, unordered=frozenset(("loose",)))
    device = LaneDevice(rig, window=window)
    device.dial(reliable=random.random() < 0.5)
    published: dict[int, tuple[Any, ...]] = {}
    for _ in range(random.randint(20, 80)):
        act(random, rig, device, published)
    for _ in range(6):
        if not device.channels:
            device.dial()
        device.round()
        rig.pass_time(10 * SECOND)
    assert sorted(frame.key or 0 for frame in device.shown) == sorted(published)
    for name in set(published.values()):
        if "loose" not in name:
            keys = [f.key for f in device.shown if f.key is not None and published[f.key] == name]
            assert keys == sorted(keys), name
    assert {rig.state(key) for key in published} <= {State.DELIVERED}
    while device.channels:
        device.lose()
    lanes = session_of(rig).lanes
    assert lanes is None or not lanes.out.open


def act(
    random: Random, rig: Rig, device: LaneDevice, published: dict[int, tuple[Any, ...]]
) -> None:
    """One thing happens."""
    what = random.random()
    if what < 0.3:
        for _ in range(random.randint(1, 6)):
            name = random.choice(NAMES)
            (key,) = rig.publish(to("phone", body=b"%d" % len(published), **name))
            published[key] = tuple(name.values())
        rig.run()
    elif not device.channels:
        device.dial(reliable=random.random() < 0.5)
    elif what < 0.55:
        device.hear(random.randint(1, 5), random.choice(device.channels))
    elif what < 0.7:
        while device.waiting and random.random() < 0.7:
            device.finish_one(random)
    elif what < 0.82:
        device.acknowledge()
    elif what < 0.88:
        device.lose(random.choice(device.channels))
    elif what < 0.9:
        device.channels = []
        rig.crash()
    elif what < 0.93:
        device.dial()
    elif what < 0.95 and len(device.channels) < 3:
        device.dial(join=True)
    elif what < 0.96:
        rig.pass_time(IDLE)
    elif what < 0.97:
        device.forget_everything()
    else:
        rig.pass_time(random.choice([SECOND, 5 * SECOND]))
