"""Lanes in which a device sends: which message goes where, and when a lane ends.

About `device/outgoing_lanes.py`, `device/outgoing_lane.py` and `device/plain_order.py`.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lasthop.clock import SECOND
from lasthop.device.outgoing_lanes import IDLE
from lasthop.wire.hop.frames import (
    Ack,
    Credit,
    Frame,
    Headers,
    LaneClaim,
    LaneClaims,
    LaneFrame,
    Last,
    MessageFrame,
    Operation,
    Skip,
)
from tests.device.peer import NOW, TERMS, Peer

LANES = replace(TERMS, lanes=True)


@pytest.fixture
def peer() -> Peer:
    peer = Peer(LANES)
    assert peer.welcome()
    peer.said()
    return peer


def send(
    peer: Peer,
    body: str = "x",
    *,
    queue: str | None = None,
    priority: int = 4,
    operation: Operation = Operation.DATA,
) -> int:
    headers = Headers(to="device:other", queue=queue, priority=priority, operation=operation)
    return peer.session.queue(NOW, headers=headers, body=body.encode())


def sent(frames: list[Frame]) -> list[tuple[int, int | None, str]]:
    """The messages among the frames: lane, number, body."""
    return [(f.lane, f.seq, f.body.decode()) for f in frames if isinstance(f, MessageFrame)]


def acknowledge(peer: Peer, lane: int, count: int, now: int = NOW) -> None:
    ack = Ack(count, count)
    peer.arrive(LaneFrame(lane, ack) if lane else ack, now=now)


def test_each_queue_and_priority_has_its_lane(peer: Peer) -> None:
    send(peer, "plain")
    send(peer, "bulk", queue="bulk")
    send(peer, "urgent", queue="bulk", priority=8)
    send(peer, "prior", priority=1)
    send(peer, "more", queue="bulk")
    send(peer, "subscribe", queue="bulk", operation=Operation.SUBSCRIBE)
    assert sorted(sent(peer.said())) == [
        (0, 0, "plain"),
        (0, 1, "subscribe"),
        (2, 0, "bulk"),
        (2, 1, "more"),
        (4, 0, "urgent"),
        (6, 0, "prior"),
    ]


def test_nothing_leaves_in_a_lane_before_it_is_durable(peer: Peer) -> None:
    send(peer, "a", queue="a")
    send(peer, "b", queue="b")
    assert peer.session.frames() == []
    assert len(sent(peer.said())) == 2
    send(peer, "more", queue="a")
    assert peer.session.frames() == []


def test_the_most_urgent_lane_is_first(peer: Peer) -> None:
    send(peer, "bulk", queue="bulk", priority=0)
    send(peer, "plain")
    send(peer, "urgent", priority=9)
    assert [body for _, _, body in sent(peer.said())] == ["urgent", "plain", "bulk"]


def test_without_agreement_everything_is_in_lane_0() -> None:
    peer = Peer(LANES)
    peer.lanes = False
    peer.welcome()
    send(peer, "bulk", queue="bulk")
    assert sent(peer.said()) == [(0, 0, "bulk")]


def test_what_was_numbered_before_the_gateway_understood_lanes_keeps_its_order() -> None:
    peer = Peer(LANES)
    peer.lanes = False
    peer.welcome()
    send(peer, "first", queue="bulk")
    peer.said()
    peer.lanes = True
    peer.welcome()
    send(peer, "second", queue="bulk")
    assert sent(peer.said()) == [(0, 0, "first"), (0, 1, "second")]
    acknowledge(peer, 0, 2)
    send(peer, "third", queue="bulk")
    assert sent(peer.said()) == [(2, 0, "third")]


def test_what_was_queued_before_the_first_contact_has_its_lane() -> None:
    peer = Peer(LANES)
    send(peer, "first", queue="bulk")
    peer.welcome()
    assert sent(peer.said()) == [(2, 0, "first")]


def test_a_queue_without_order_has_a_lane_without_order(peer: Peer) -> None:
    peer.session.outbox.lanes.unordered = frozenset({"bulk"})
    send(peer, "bulk", queue="bulk")
    send(peer, "other", queue="other")
    assert sent(peer.said()) == [(3, 0, "bulk"), (4, 0, "other")]


def test_a_lane_without_credit_holds_up_no_other(peer: Peer) -> None:
    peer.arrive(LaneFrame(2, Credit(0, 0)))
    send(peer, "bulk", queue="bulk")
    peer.said()
    peer.arrive(LaneFrame(2, Credit(0, 0)))
    send(peer, "more", queue="bulk")
    send(peer, "other", queue="other")
    assert sent(peer.said()) == [(4, 0, "other")]
    peer.arrive(LaneFrame(2, Credit(64, 1 << 20)))
    assert sent(peer.said()) == [(2, 1, "more")]


def test_every_lane_has_room_for_one_small_message() -> None:
    peer = Peer(LANES)
    peer.welcome(window=Credit(2, 100))
    for n in range(4):
        send(peer, f"bulk{n}", queue="bulk")
    send(peer, "a", queue="a")
    send(peer, "b", queue="a")
    send(peer, "y" * 20_000, queue="large")
    assert [each[:2] for each in sent(peer.said())] == [(2, 0), (2, 1), (4, 0)]
    acknowledge(peer, 2, 2)
    assert [each[:2] for each in sent(peer.said())] == [(2, 2)]
    acknowledge(peer, 4, 1)
    acknowledge(peer, 2, 3)
    assert [each[:2] for each in sent(peer.said())] == [(2, 3), (4, 1)]
    acknowledge(peer, 2, 4)
    acknowledge(peer, 4, 2)
    assert [each[:2] for each in sent(peer.said())] == [(6, 0)], "alone, whatever its size"


def test_a_pause_of_the_session_is_one_of_all_lanes(peer: Peer) -> None:
    send(peer, "a", queue="a")
    peer.said()
    peer.arrive(Credit(0, 0))
    send(peer, "b", queue="b")
    assert sent(peer.said()) == []


def test_what_one_lane_sends_is_a_part_of_the_session_window() -> None:
    peer = Peer(LANES)
    peer.welcome(window=Credit(3, 1 << 20))
    for n in range(3):
        send(peer, f"a{n}", queue="a")
        send(peer, f"b{n}", queue="b")
    assert len(sent(peer.said())) == 3
    acknowledge(peer, 2, 1)
    assert len(sent(peer.said())) == 1


def test_after_65_lanes_what_is_new_is_folded_into_lane_0_and_unfolded_when_it_is_there(
    peer: Peer,
) -> None:
    peer.welcome(window=Credit(100, 1 << 20))
    for n in range(64):
        send(peer, queue=f"q{n}")
    send(peer, "folded", queue="late")
    send(peer, "again", queue="late")
    assert sent(peer.said())[-2:] == [(0, 0, "folded"), (0, 1, "again")]
    acknowledge(peer, 2, 1)
    send(peer, "still", queue="late")
    frames = peer.said()
    assert (0, 2, "still") in sent(frames), "its order is that of lane 0 until all is there"
    assert LaneFrame(2, Last(1)) in frames, "the idle lane makes room"
    acknowledge(peer, 2, 2)
    acknowledge(peer, 0, 2)
    send(peer, "stays", queue="late")
    assert (0, 3, "stays") in sent(peer.said())
    acknowledge(peer, 0, 4)
    send(peer, "unfolded", queue="late")
    assert sent(peer.said()) == [(130, 0, "unfolded")]


def test_a_folded_queue_stays_folded_after_a_crash(peer: Peer) -> None:
    for n in range(64):
        send(peer, queue=f"q{n}")
    send(peer, "folded", queue="late")
    peer.said()
    peer.crash()
    lanes = LaneClaims(65, tuple(LaneClaim(2 * n, 1) for n in range(1, 65)))
    peer.welcome(lanes=lanes)
    send(peer, "again", queue="late")
    assert sent(peer.said()) == [(0, 0, "folded"), (0, 1, "again")]


def test_an_idle_lane_is_closed_and_its_id_is_never_used_again(peer: Peer) -> None:
    send(peer, queue="a")
    peer.said()
    acknowledge(peer, 2, 1)
    assert peer.session.next_expiry() == NOW + IDLE
    peer.session.decide(NOW + IDLE - SECOND)
    assert peer.said() == []
    peer.session.decide(NOW + IDLE)
    assert peer.session.frames() == [], "LAST has a number, which is not durable"
    assert peer.said() == [LaneFrame(2, Last(1))]
    assert not peer.session.waiting
    send(peer, "next", queue="a")
    assert sent(peer.said()) == [(4, 0, "next")], "it does not wait for the end of the old lane"
    acknowledge(peer, 2, 2)
    peer.commit()
    assert [row.id for row in peer.inbox.load().lanes] == [4]


def test_a_last_is_repeated_when_a_channel_is_lost(peer: Peer) -> None:
    send(peer, queue="a")
    peer.said()
    acknowledge(peer, 2, 1)
    peer.session.decide(NOW + IDLE)
    assert peer.said() == [LaneFrame(2, Last(1))]
    assert peer.said() == []
    peer.session.rerouted()
    assert LaneFrame(2, Last(1)) in peer.said()


def test_without_contact_idle_lanes_are_forgotten(peer: Peer) -> None:
    send(peer, queue="a")
    send(peer, "lacking", queue="b")
    peer.said()
    acknowledge(peer, 2, 1)
    peer.session.lost()
    peer.commit()
    assert peer.session.hello().sending == (4,)
    assert [row.id for row in peer.inbox.load().lanes] == [4]
    peer.welcome(lanes=LaneClaims(3, (LaneClaim(4, 0),)))
    send(peer, "new", queue="a")
    assert sorted(sent(peer.said())) == [(4, 0, "lacking"), (6, 0, "new")]


def test_lanes_survive_a_crash_with_their_messages_and_ids(peer: Peer) -> None:
    send(peer, "a0", queue="a")
    send(peer, "a1", queue="a")
    send(peer, "b0", queue="b")
    peer.said()
    acknowledge(peer, 2, 1)
    acknowledge(peer, 4, 1)
    peer.crash()
    assert peer.session.hello().sending == (2, 4)
    peer.welcome(lanes=LaneClaims(3, (LaneClaim(2, 1), LaneClaim(4, 1))))
    send(peer, "a2", queue="a")
    send(peer, "c0", queue="c")
    assert sorted(sent(peer.said())) == [(2, 1, "a1"), (2, 2, "a2"), (6, 0, "c0")]


def test_a_gateway_that_lacks_what_was_acknowledged_need_not_wait_for_it(peer: Peer) -> None:
    for n in range(3):
        send(peer, f"a{n}", queue="a")
    peer.said()
    acknowledge(peer, 2, 2)
    peer.commit()
    peer.welcome(lanes=LaneClaims(2, (LaneClaim(2, 0),)))
    frames = peer.said()
    assert frames[0] == LaneFrame(2, Skip(0, 2))
    assert sent(frames) == [(2, 2, "a2")]


def test_a_skip_in_a_lane_without_order_goes_no_farther_than_its_window(peer: Peer) -> None:
    peer.session.outbox.lanes.unordered = frozenset({"any"})
    peer.welcome(window=Credit(2000, 1 << 20))
    for _ in range(2):
        for n in range(500):
            send(peer, f"a{n}", queue="any")
        peer.said()
        acknowledge(peer, 3, peer.session.outbox.lanes.by_id[3].outbound.assigned)
    send(peer, "last", queue="any")
    peer.commit()
    peer.welcome(window=Credit(2000, 1 << 20), lanes=LaneClaims(2, (LaneClaim(3, 0),)))
    frames = peer.said()
    assert frames[:2] == [LaneFrame(3, Skip(0, 512)), LaneFrame(3, Skip(512, 488))]
    assert sent(frames) == [(3, 1000, "last")]


@pytest.mark.parametrize(
    "claims",
    [
        LaneClaims(3, (LaneClaim(2, 1), LaneClaim(4, 0))),
        LaneClaims(2, (LaneClaim(2, 2),)),
        LaneClaims(2, (LaneClaim(2, 0, 0, ((1, 2),)),)),
        LaneClaims(2),
    ],
    ids=["an unknown lane", "an unknown number", "a number beyond a gap", "a closed lane"],
)
def test_an_older_copy_of_the_device_forgets_its_session(peer: Peer, claims: LaneClaims) -> None:
    send(peer, queue="a")
    peer.said()
    assert not peer.welcome(lanes=claims)
    peer.commit()
    assert peer.session.hello().epoch is None


def test_a_new_epoch_numbers_again_what_the_gateway_lacks_lane_by_lane(peer: Peer) -> None:
    for n in range(3):
        send(peer, f"a{n}", queue="a")
        send(peer, f"b{n}", queue="b")
        send(peer, f"z{n}")
    peer.said()
    assert peer.welcome(epoch=2, superseded=1, lane_superseded=((2, 2, ()),))
    assert sorted(sent(peer.said())) == [
        (0, 0, "z1"),
        (0, 1, "z2"),
        (2, 0, "a2"),
        (4, 0, "b0"),
        (4, 1, "b1"),
        (4, 2, "b2"),
    ]
    peer.crash()
    assert peer.session.hello().sending == (2, 4)


def test_a_new_epoch_tells_what_came_without_order(peer: Peer) -> None:
    peer.session.outbox.lanes.unordered = frozenset({"any"})
    for n in range(4):
        send(peer, f"a{n}", queue="any")
    peer.said()
    assert peer.welcome(epoch=2, superseded=0, lane_superseded=((3, 1, ((2, 3),)),))
    assert sent(peer.said()) == [(3, 0, "a1"), (3, 1, "a3")]


def test_a_new_epoch_without_lanes_folds_everything(peer: Peer) -> None:
    send(peer, "a0", queue="a")
    send(peer, "b0", queue="b")
    send(peer, "z0")
    peer.said()
    peer.lanes = False
    assert not peer.welcome()
    peer.commit()
    assert peer.welcome(epoch=2)
    assert [each[:2] for each in sent(peer.said())] == [(0, 0), (0, 1), (0, 2)]


def test_a_join_must_agree_about_lanes(peer: Peer) -> None:
    hello = peer.session.joining()
    assert hello is not None
    assert hello.features
    granted = peer.welcomed_with(hello, features=0)
    assert not peer.session.joined(hello, granted)
    assert peer.session.joined(hello, replace(granted, features=hello.features))
