"""That a message has left is noted when there is time: with its acknowledgement, or soon after."""

from __future__ import annotations

from lasthop.clock import SECOND
from lasthop.core.commits import LAZY_DELAY
from lasthop.core.lifecycle import State
from tests.core.rig import Rig, to


def _send(rig: Rig) -> tuple[int, int]:
    """A message that has just left, and nothing more has been written; its channel and key."""
    channel = rig.connect()
    (key,) = rig.publish(to("phone"))
    rig.settle()
    rig.take()
    rig.write()
    assert len(rig.messages(channel)) == 1
    assert rig.story(key) == ["accepted", "released"]
    return channel, key


def test_it_waits_for_the_acknowledgement_and_comes_before_it(rig: Rig) -> None:
    rig.lose(rig.connect("tablet"))
    channel, key = _send(rig)
    left_at = rig.now
    rig.publish(to("tablet"))  # Somebody else is in a hurry.
    rig.run(flush=False)
    assert rig.story(key) == ["accepted", "released"]
    rig.now += LAZY_DELAY // 2
    rig.ack(channel, 1)
    assert rig.story(key) == ["accepted", "released", "transmitted", "delivered"]
    events = [event for event in rig.events() if event.get("msg") == key]
    assert [event.get("prev", -1) for event in events] == [-1, *(e["n"] for e in events[:-1])]
    assert events[2]["t"] == left_at
    assert rig.row(key).last_event == events[-1]["n"]


def test_without_one_it_is_noted_after_a_moment(rig: Rig) -> None:
    _, key = _send(rig)
    due = rig.gateway.next_wake()
    assert due is not None
    assert due <= rig.now + LAZY_DELAY
    rig.now += LAZY_DELAY
    rig.run(flush=False)
    assert rig.story(key) == ["accepted", "released", "transmitted"]
    assert rig.row(key).attempts == 1


def test_a_gateway_that_stops_notes_it(rig: Rig) -> None:
    _, key = _send(rig)
    idle = [rig.gateway.idle]
    rig.run(flush=True)
    idle.append(rig.gateway.idle)
    assert idle == [False, True]
    assert rig.story(key)[-1] == "transmitted"


def test_leaving_twice_is_noted_twice(rig: Rig) -> None:
    channel, key = _send(rig)
    rig.gateway.channel_lost(channel, "broken", rig.now)
    rig.resume()
    rig.run()
    assert rig.story(key) == ["accepted", "released", "transmitted", "transmitted"]
    assert [e["attempt"] for e in rig.events() if e["kind"] == "transmitted"] == [1, 2]


def test_a_crash_forgets_the_note_but_not_that_it_may_have_left(rig: Rig) -> None:
    _, key = _send(rig)
    rig.crash()
    rig.gateway.cancel("app", key, rig.now)
    rig.run()
    assert rig.state(key) is State.SENDING
    rig.gateway.admin.remove("app", "phone", rig.now + SECOND)
    rig.run()
    assert rig.state(key) is State.TIMED_OUT
