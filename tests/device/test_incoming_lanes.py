"""Lanes in which messages come: each has its own numbers, order, durability and end.

About `device/incoming_lanes.py`, `device/incoming_lane.py` and `device/arrivals.py`.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lasthop.device.terms import DeviceTerms
from lasthop.errors import CreditExceeded, OutOfOrder
from lasthop.wire.hop.frames import (
    Ack,
    Credit,
    Dropped,
    Feature,
    Frame,
    Headers,
    Hello,
    LaneClaim,
    LaneClaims,
    LaneFrame,
    Last,
    Skip,
    Welcome,
)
from tests.device.peer import INCARNATION, KEY, NOW, TERMS, Peer, frame

LANES = replace(TERMS, lanes=True)


@pytest.fixture
def peer() -> Peer:
    peer = Peer(LANES)
    assert peer.welcome()
    peer.said()
    return peer


def in_lane(lane: int, frames: list[Frame]) -> list[object]:
    return [f.frame for f in frames if isinstance(f, LaneFrame) and f.lane == lane]


def claimed(peer: Peer) -> Hello:
    while peer.commit():
        pass
    return peer.session.hello()


def texts(peer: Peer) -> list[str]:
    return [message.text for message in peer.ready()]


def test_lanes_are_only_offered_by_terms_that_say_so(peer: Peer) -> None:
    assert peer.hello is not None
    assert peer.hello.features == Feature.LANES
    plain = Peer(replace(TERMS, lanes=False))
    plain.welcome()
    assert plain.hello is not None
    assert plain.hello.features == 0


def test_a_gap_in_one_lane_holds_up_no_other(peer: Peer) -> None:
    peer.arrive(frame(1, "late"), frame(0, "a", lane=2), frame(1, "b", lane=2))
    said = peer.said()
    assert Ack(0, 0, ((1, 2),)) in said
    assert in_lane(2, said) == [Ack(2, 0)]
    assert texts(peer) == ["a", "b"]
    peer.arrive(frame(0, "early"))
    peer.said()
    assert texts(peer) == ["early", "late"]


def test_nothing_of_a_lane_is_acknowledged_before_it_is_durable(peer: Peer) -> None:
    peer.arrive(frame(0, lane=2))
    peer.said()
    peer.arrive(frame(1, lane=2))
    assert peer.session.frames() == []
    assert in_lane(2, peer.said()) == [Ack(2, 0)]


def test_what_is_finished_is_acknowledged_in_its_lane(peer: Peer) -> None:
    peer.arrive(frame(0, lane=2), frame(0), frame(0, lane=5))
    assert len(peer.said()) == 3
    peer.take()
    said = peer.said()
    assert Ack(1, 1) in said
    assert in_lane(2, said) == in_lane(5, said) == [Ack(1, 1)]
    assert peer.said() == []


def test_a_repeat_in_a_lane_is_acknowledged_again_and_nothing_else(peer: Peer) -> None:
    peer.arrive(frame(0, lane=2))
    peer.said()
    peer.take()
    peer.said()
    peer.arrive(frame(0, lane=2))
    assert in_lane(2, peer.said()) == [Ack(1, 1)]
    assert texts(peer) == []


def test_a_lane_without_order_is_handed_over_as_it_comes(peer: Peer) -> None:
    peer.arrive(frame(3, "d", lane=3), frame(1, "b", lane=3))
    assert in_lane(3, peer.said()) == [Ack(0, 0, ((1, 2), (3, 4)))]
    assert peer.take() == ["d", "b"]
    assert in_lane(3, peer.said()) == [Ack(0, 0, ((1, 2), (3, 4)), ((1, 2), (3, 4)))]
    peer.arrive(frame(3, "d", lane=3), frame(0, "a", lane=3))
    peer.said()
    assert peer.take() == ["a"]
    assert in_lane(3, peer.said()) == [Ack(2, 2, ((3, 4),), ((3, 4),))]


@pytest.mark.parametrize("finished", [False, True])
def test_a_lane_without_order_survives_a_crash_exactly_once(peer: Peer, finished: bool) -> None:
    peer.arrive(frame(2, "c", lane=3), frame(4, "e", lane=3))
    peer.said()
    first, second = peer.ready()
    peer.session.finished(first)
    if finished:
        peer.session.finished(second)
    peer.said()
    peer.crash()
    done = ((2, 3), (4, 5)) if finished else ((2, 3),)
    claim = LaneClaim(3, 0, 0, ((2, 3), (4, 5)), done)
    hello = claimed(peer)
    assert hello.lanes == LaneClaims(2, (claim,))
    peer.welcome(sending=(3,))
    assert [(m.text, m.redelivered) for m in peer.ready()] == ([] if finished else [("e", True)])
    peer.arrive(frame(4, "e", lane=3), frame(0, "a", lane=3), frame(1, "b", lane=3))
    peer.said()
    assert texts(peer) == ["a", "b"]


def test_what_waits_behind_a_gap_in_a_lane_survives_a_crash(peer: Peer) -> None:
    peer.arrive(frame(1, "b", lane=2), frame(0, "x", lane=4))
    peer.said()
    peer.crash()
    hello = claimed(peer)
    assert hello.lanes == LaneClaims(3, (LaneClaim(2, 0, 0, ((1, 2),)), LaneClaim(4, 1, 0)))
    peer.welcome(sending=(2, 4))
    assert texts(peer) == ["x"]
    peer.arrive(frame(0, "a", lane=2))
    peer.said()
    assert texts(peer) == ["a", "b"]


def test_offers_are_durable_lane_by_lane() -> None:
    peer = Peer(replace(LANES, prefetch=2))
    peer.welcome()
    urgent = Headers(priority=9)
    peer.arrive(frame(0, "slow"), frame(0, "fast", lane=2, headers=urgent))
    peer.said()
    assert texts(peer) == ["fast", "slow"]
    peer.arrive(frame(1, "unseen", lane=2, headers=urgent))
    peer.commit()
    peer.crash()
    peer.welcome(sending=(2,))
    seen = peer.ready()
    assert {message.text: message.redelivered for message in seen} == {"slow": True, "fast": True}
    peer.session.finished(*seen)
    peer.said()
    assert [(message.text, message.redelivered) for message in peer.ready()] == [("unseen", False)]


def test_lanes_that_were_not_seen_are_claimed(peer: Peer) -> None:
    peer.arrive(frame(0, lane=6))
    peer.said()
    claims = peer.session.joining()
    assert claims is not None
    assert claims.lanes == LaneClaims(4, (LaneClaim(2), LaneClaim(4), LaneClaim(6, 1)))
    assert claims.sending == ()


def test_a_closed_lane_is_acknowledged_and_forgotten(peer: Peer) -> None:
    peer.arrive(frame(0, lane=2))
    peer.said()
    peer.take()
    peer.said()
    peer.arrive(LaneFrame(2, Last(1)))
    assert peer.session.frames() == [], "not before the closing is durable"
    assert in_lane(2, peer.said()) == [Ack(2, 2)]
    assert peer.inbox.load().lanes == []
    peer.arrive(frame(0, lane=2), LaneFrame(2, Skip(5)))
    assert in_lane(2, peer.said()) == [], "what comes in a closed lane is a repeat"
    assert peer.inbox.load().lanes == []
    peer.arrive(LaneFrame(2, Last(1)))
    assert in_lane(2, peer.said()) == [Ack(2, 2)]
    assert texts(peer) == []
    assert claimed(peer).lanes == LaneClaims(2)


def test_a_lane_that_is_not_sent_in_any_more_is_closed_by_the_handshake(peer: Peer) -> None:
    peer.arrive(frame(1, "behind", lane=2), frame(0, "x", lane=6))
    peer.said()
    peer.take()
    peer.welcome(sending=(6,))
    peer.said()
    assert texts(peer) == ["behind"], "it waits for nothing any more"
    assert claimed(peer).lanes == LaneClaims(4, (LaneClaim(6, 1, 1),))
    peer.crash()
    assert claimed(peer).lanes == LaneClaims(4, (LaneClaim(6, 1, 1),))
    peer.welcome(sending=(6,))
    assert texts(peer) == ["behind"]
    peer.session.finished(*peer.session.arrivals.handover.fresh(NOW))


def test_numbers_that_the_gateway_does_not_wait_for_are_closed_lane_by_lane(peer: Peer) -> None:
    peer.arrive(frame(2, "c", lane=2))
    peer.said()
    peer.welcome(sending=(2,), lane_closed=((2, 2),))
    peer.said()
    assert texts(peer) == ["c"]


def test_a_skip_is_about_its_lane(peer: Peer) -> None:
    peer.arrive(frame(1, "b", lane=2), frame(1, "other"), LaneFrame(2, Skip(0)))
    peer.said()
    assert texts(peer) == ["b"]


def test_what_is_dropped_is_told_in_its_lane(peer: Peer) -> None:
    headers = Headers(deliver_within=1)
    late = frame(0, lane=2, key=KEY, headers=headers)
    peer.arrive(late, now=NOW + 10**6)
    assert in_lane(2, peer.said()) == [Dropped(((0, 1),)), Ack(1, 1)]
    assert claimed(peer).lane_dropped == ((2, ((0, 1),)),)
    peer.welcome(sending=(2,))
    assert claimed(peer).lane_dropped == ()


def test_a_new_epoch_begins_without_lanes_and_keeps_what_is_unfinished_first(peer: Peer) -> None:
    peer.arrive(
        frame(0, "zero"), frame(0, "a", lane=2), frame(1, "b", lane=2), frame(3, "gap", lane=2)
    )
    peer.said()
    seen = {message.text: message for message in peer.ready()}
    peer.session.finished(seen["a"])
    peer.said()
    urgent = Headers(priority=9)
    assert peer.welcome(epoch=2, superseded=0)
    peer.arrive(
        frame(0, "new", key=KEY + 9, lane=2, headers=urgent), frame(1, "b", key=KEY + 2001, lane=2)
    )
    said = peer.said()
    assert in_lane(2, said) == [Ack(2, 0)], "what is unfinished has the number of its repeat"
    peer.crash()
    hello = claimed(peer)
    assert hello.lanes == LaneClaims(2, (LaneClaim(2, 2, 0),))
    peer.welcome(epoch=2, sending=(2,))
    again = peer.ready()
    assert [(m.text, m.redelivered) for m in again] == [
        ("zero", True),
        ("b", True),
        ("new", True),
    ]
    peer.session.finished(*again)
    assert in_lane(2, peer.said()) == [Ack(2, 2)]
    peer.crash()
    assert peer.inbox.load().inbox == []


def test_the_same_lane_may_hold_messages_of_both_epochs(peer: Peer) -> None:
    peer.arrive(*(frame(n, lane=2) for n in range(3)))
    peer.said()
    first, second, _ = peer.ready()
    peer.session.finished(second)
    # In one change: a removal, a new epoch, and other messages in the same places.
    hello = None
    peer.said()
    peer.session.finished(first)
    peer.said()
    hello = peer.welcome(epoch=2, superseded=0)
    assert hello
    peer.arrive(*(frame(n, f"n{n}", lane=2, key=KEY + 7000 + n) for n in range(3)))
    peer.said()
    peer.crash()
    peer.welcome(epoch=2, sending=(2,))
    assert texts(peer) == ["m2", "n0", "n1", "n2"]


def test_a_new_epoch_in_the_change_that_ends_a_message_keeps_what_stands_in_its_place(
    peer: Peer,
) -> None:
    peer.arrive(*(frame(n, lane=2) for n in range(3)))
    peer.said()
    handed = peer.ready()
    hello = claimed(peer)
    peer.session.finished(handed[0])
    peer.session.welcomed(
        hello,
        Welcome(incarnation=INCARNATION, epoch=2, features=hello.features, superseded=0),
        NOW,
    )
    peer.arrive(*(frame(n, f"n{n}", lane=2, key=KEY + 7000 + n) for n in range(3)))
    peer.said()
    peer.crash()
    peer.welcome(epoch=2, sending=(2,))
    assert texts(peer) == ["m1", "m2", "n0", "n1", "n2"]


def test_a_gateway_without_lanes_is_begun_anew(peer: Peer) -> None:
    peer.arrive(frame(0, "kept", lane=2))
    peer.said()
    peer.lanes = False
    assert not peer.welcome()
    assert claimed(peer).epoch is None
    assert peer.welcome(epoch=9, incarnation=b"another!")
    peer.said()
    assert peer.take() == ["kept"]
    assert claimed(peer).lanes is None


def test_lanes_that_were_not_used_do_not_begin_anew(peer: Peer) -> None:
    peer.lanes = False
    assert peer.welcome()


def test_no_more_lanes_than_may_be_open(peer: Peer) -> None:
    for n in range(1, 65):
        peer.arrive(frame(0, lane=2 * n))
    with pytest.raises(CreditExceeded):
        peer.arrive(frame(0, lane=130))
    peer.arrive(LaneFrame(2, Last(1)))
    peer.arrive(frame(0, lane=130))


def test_lanes_that_were_not_seen_count_as_open(peer: Peer) -> None:
    with pytest.raises(CreditExceeded):
        peer.arrive(frame(0, lane=2000))


def test_a_lane_stays_as_it_was_opened(peer: Peer) -> None:
    peer.arrive(frame(0, lane=2))
    with pytest.raises(OutOfOrder):
        peer.arrive(frame(0, lane=3))


def test_the_fullest_lane_is_paused_before_the_session() -> None:
    terms = DeviceTerms(
        app="shop",
        name="phone",
        lanes=True,
        window=Credit(8, 1 << 20),
        inbox_messages=100,
        prefetch=1,
    )
    peer = Peer(terms)
    peer.welcome()
    peer.said()
    for n in range(30):
        peer.arrive(frame(n, lane=2))
    peer.arrive(frame(0, lane=4))
    said = peer.said()
    assert Credit(0, 0) in in_lane(2, said)
    assert in_lane(4, said) == [Ack(1, 0)]
    assert Credit(0, 0) not in said
    said = []
    while peer.take():
        said += peer.said()
    assert terms.window in in_lane(2, said)
    assert Credit(0, 0) not in said


def test_a_lane_of_a_small_inbox_is_not_paused_for_ever() -> None:
    terms = DeviceTerms(
        app="shop",
        name="phone",
        lanes=True,
        window=Credit(4, 300),
        inbox_messages=10,
        inbox_bytes=300,
    )
    peer = Peer(terms)
    peer.welcome()
    peer.arrive(*(frame(n, "x" * 70, lane=2) for n in range(4)))
    assert Credit(0, 0) in in_lane(2, peer.said())
    peer.take()
    assert terms.window in in_lane(2, peer.said())


def test_claims_stay_within_a_handshake() -> None:
    peer = Peer(LANES)
    peer.welcome()
    for n in range(1, 41):
        peer.arrive(*(frame(2 * k + 1, lane=2 * n) for k in range(20)))
    peer.said()
    claims = claimed(peer).lanes
    assert claims is not None
    assert sum(len(claim.individual) for claim in claims.lanes) <= 256
    assert all(claim.individual[-1] == (39, 40) for claim in claims.lanes)
