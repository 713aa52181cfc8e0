"""Coming back: everything as the store has it, and nothing else."""

from __future__ import annotations

import pytest

from lasthop.clock import SECOND
from lasthop.core.lifecycle import State
from lasthop.errors import StoreBroken
from lasthop.wire.hop.frames import Ack, Credit
from tests.core.rig import APP, BEST_EFFORT, Rig, publication, to


def test_what_was_not_durable_never_happened(rig: Rig) -> None:
    rig.connect()
    rig.publish(to("phone"))
    rig.settle()
    rig.take()
    rig.crash()
    rig.run()
    assert rig.store.counts().messages == 0


def test_what_was_under_way_is_still_under_way(rig: Rig) -> None:
    rig.connect()
    keys = rig.publish(*[to("phone", b"%d" % i) for i in range(4)])
    rig.run()
    rig.hear(1, Ack(2, 1))
    rig.crash()
    channel = rig.resume(received=2, delivered=1)
    assert [frame.seq for frame in rig.messages(channel)] == [2, 3]
    assert rig.welcome(channel).resumed
    rig.ack(channel, 4)
    assert [rig.state(key) for key in keys] == [State.DELIVERED] * 4


def test_a_number_that_was_taken_but_not_durable_is_given_out_again(rig: Rig) -> None:
    rig.connect()
    rig.publish(to("phone", b"lost"))
    rig.settle()
    rig.crash()
    rig.publish(to("phone", b"kept"))
    rig.run()
    channel = rig.resume()
    assert [(f.seq, f.body) for f in rig.messages(channel)] == [(0, b"kept")]


def test_numbers_that_ended_are_skipped(rig: Rig) -> None:
    channel = rig.connect()
    rig.publish(to("phone", deliver_before=rig.now + SECOND), to("phone"))
    rig.run()
    rig.lose(channel)
    rig.now += 2 * SECOND
    first = rig.resume()
    rig.lose(first)
    rig.crash()
    second = rig.resume()
    assert rig.skips(first) == rig.skips(second) == [0]
    rig.ack(second, 2)
    assert rig.gateway.deliveries.items == {}


def test_what_the_device_holds_beyond_a_gap_is_never_closed(rig: Rig) -> None:
    rig.connect()
    rig.publish(to("phone", b"0"), to("phone", b"1"))
    rig.run()
    rig.hear(1, Ack(0, 0, ((1, 2),)))
    rig.crash()
    channel = rig.resume()  # More gaps than a HELLO can tell: it does not mention number 1.
    assert rig.skips(channel) == []
    assert [frame.seq for frame in rig.messages(channel)] == [0, 1]
    session = rig.gateway.deliveries.named(APP, "phone")
    assert session.lane.flight_bytes == 1


def test_delays_and_deadlines_still_hold(rig: Rig) -> None:
    channel = rig.connect()
    late, delayed = rig.publish(
        to("phone", deliver_after=rig.now + SECOND, deliver_before=rig.now + 2 * SECOND),
        to("phone", deliver_after=rig.now + 5 * SECOND),
    )
    rig.run()
    rig.lose(channel)
    rig.crash()
    rig.pass_time(3 * SECOND)
    assert rig.state(late) is State.EXPIRED
    channel = rig.resume()
    assert rig.messages(channel) == []
    rig.pass_time(3 * SECOND)
    assert [frame.key for frame in rig.messages(channel)] == [delayed]


def test_replace_keys_still_hold_for_each_publisher(rig: Rig) -> None:
    rig.lose(rig.connect())
    rig.publish(to("phone", b"1", replace_key="k"))
    rig.publish(to("phone", b"other", replace_key="k"), source="publisher:other")
    rig.run()
    rig.crash()
    rig.publish(to("phone", b"2", replace_key="k"))
    assert rig.bodies(rig.resume()) == [b"other", b"2"]


def test_what_may_have_left_is_marked_when_it_is_numbered_anew(rig: Rig) -> None:
    rig.connect()
    rig.publish(to("phone"))
    rig.settle()
    rig.take()
    rig.write()
    assert len(rig.messages(1)) == 1
    rig.crash()  # The transmission was not noted yet.
    (frame,) = rig.messages(rig.connect())
    assert frame.headers is not None
    assert frame.headers.redelivered


def test_best_effort_is_not_sent_twice(rig: Rig) -> None:
    rig.connect()
    (key,) = rig.publish(to("phone", **BEST_EFFORT))
    rig.settle()
    rig.take()
    rig.write()
    rig.crash()
    rig.run()
    assert rig.messages(rig.resume()) == []
    assert rig.state(key) is State.SENT


def test_a_message_of_which_one_delivery_ends_in_restoring_can_still_be_cancelled(
    rig: Rig,
) -> None:
    rig.connect("a")
    rig.lose(rig.connect("b"))
    (key,) = rig.publish(to("app:", **BEST_EFFORT))
    rig.settle()
    rig.take()
    rig.write()
    rig.crash()
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert withdrawal.taken_back == 1


def test_messages_of_devices_are_not_taken_twice(rig: Rig) -> None:
    rig.connect("tablet")
    channel = rig.connect()
    rig.hear(channel, publication(0), publication(1))
    rig.crash()
    channel = rig.resume()
    assert rig.welcome(channel).received == 2
    rig.hear(channel, publication(1), publication(2))
    assert rig.store.counts().messages == 3


def test_ids_and_events_go_on(rig: Rig) -> None:
    rig.lose(rig.connect())
    (first,) = rig.publish(to("phone"))
    rig.run()
    rig.crash()
    (second,) = rig.publish(to("phone"))
    rig.run()
    assert second > first
    assert [e["n"] for e in rig.events()] == list(range(len(rig.events())))
    counts = [e["dn"] for e in rig.events() if e.get("dev") == "phone"]
    assert counts == list(range(len(counts)))


def test_a_store_that_contradicts_itself_is_refused(rig: Rig) -> None:
    rig.connect(window=Credit(1, 100))
    rig.publish(to("phone"))
    rig.run()
    rig.store._kept.sessions[1].assigned = 0
    with pytest.raises(StoreBroken):
        rig.crash()
