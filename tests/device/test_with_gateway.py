"""The device and the real gateway core over a link that a test carries byte by byte.

About `device/session.py` and `core/gateway.py`.
"""

from __future__ import annotations

from lasthop.clock import MILLISECOND, SECOND
from lasthop.core.lifecycle import State
from lasthop.device import compose
from lasthop.device.session_events import MessageAccepted, Refused, RequestAnswered
from lasthop.device.terms import DeviceTerms
from lasthop.message import Reliability, Target, TargetKind
from lasthop.wire.hop.frames import Credit
from tests.device.world import APP, NAME, World


def connected() -> World:
    world = World()
    world.dial()
    world.carry()
    return world


def queue(world: World, draft: compose.Draft) -> int:
    return draft.queue(world.device, world.now)


def test_messages_arrive_once_and_in_order() -> None:
    world = connected()
    world.publish("a", "b", "c")
    world.carry()
    assert world.bodies() == ["a", "b", "c"]
    assert world.states() == {State.DELIVERED: 3}


def test_what_was_sent_on_a_broken_link_comes_again_once() -> None:
    world = connected()
    world.publish("a", "b")
    world.carry_down()
    world.reset()
    world.dial()
    world.carry()
    assert world.bodies() == ["a", "b"]


def test_a_device_that_forgot_everything_gets_what_was_not_delivered() -> None:
    world = connected()
    world.publish("a")
    world.carry()
    world.publish("b")
    world.inbox = type(world.inbox)()
    world.crash_device()
    world.dial()
    world.carry()
    assert world.bodies() == ["a", "b"]


def test_a_late_message_is_dropped_and_the_gateway_told() -> None:
    world = connected()
    world.publish("a", "late", "b", before=world.now + SECOND)
    world.publish("c")
    world.now += SECOND + MILLISECOND
    world.carry()
    assert world.bodies() == ["c"]
    assert world.states() == {State.DELIVERED: 1, State.EXPIRED: 3}


def test_what_was_dropped_while_away_is_told_on_return() -> None:
    world = connected()
    world.publish("late", before=world.now + SECOND)
    world.carry_down()
    world.settle_device()
    world.carry_up()
    world.reset()
    world.now += 2 * SECOND
    world.take()
    world.dial()
    world.carry()
    assert world.bodies() == []
    assert world.states() == {State.EXPIRED: 1}


def test_a_gateway_restored_from_an_older_copy_repeats_nothing() -> None:
    world = connected()
    world.publish("a")
    world.carry()
    backup = world.copy_of_store()
    world.publish("b", "c")
    world.carry()
    world.now += SECOND
    world.restore_gateway(backup)
    world.publish("d")
    for _ in range(2):
        world.dial()
        world.carry()
    assert world.bodies() == ["a", "b", "c", "d"]


def test_a_gateway_restored_from_a_copy_with_waiting_messages_repeats_none_of_them() -> None:
    world = connected()
    world.reset()
    world.publish("a", "b")
    backup = world.copy_of_store()
    world.dial()
    world.carry()
    world.now += SECOND
    world.restore_gateway(backup)
    world.dial()
    world.carry()
    assert world.bodies() == ["a", "b"]
    assert world.states() == {State.DELIVERED: 2}


def test_large_messages_stay_within_the_window_of_bytes() -> None:
    world = World(DeviceTerms(app=APP, name=NAME, window=Credit(64, 1000)))
    world.dial()
    world.carry()
    bodies = [letter * 600 for letter in "abcde"] + ["f" * 5000, "g" * 400, "h" * 600]
    world.publish(*bodies)
    world.carry()
    assert world.bodies() == bodies
    assert world.closes == []


def test_what_was_under_way_to_a_full_inbox_comes_again_without_offence() -> None:
    world = World(DeviceTerms(app=APP, name=NAME, window=Credit(4, 10_000), inbox_messages=8))
    world.dial()
    world.carry()
    world.publish(*map(str, range(20)))
    world.carry_down()
    world.settle_device()
    world.carry_up()
    world.reset()
    for _ in range(3):
        world.dial()
        for _ in range(5):
            world.carry_up()
            world.carry_down()
            world.settle_device()
        world.reset()
        assert world.device.held <= 8
    assert world.closes == []
    world.dial()
    world.carry()
    assert world.bodies() == [str(number) for number in range(20)]


def test_best_effort_arrives_when_the_link_holds() -> None:
    world = connected()
    world.publish("now", reliability=Reliability.BEST_EFFORT)
    world.carry()
    assert world.bodies() == ["now"]
    assert world.states() == {State.SENT: 1}


def test_a_device_writes_to_itself() -> None:
    world = connected()
    key = queue(world, compose.message(f"device:{NAME}", "note", title="To myself"))
    world.carry()
    (message,) = world.handed
    assert (message.text, message.title, message.source) == ("note", "To myself", f"device:{NAME}")
    assert MessageAccepted(key) in world.happened


def test_a_subscriber_gets_what_is_published() -> None:
    world = connected()
    queue(world, compose.subscription("news.local", on=True))
    world.carry()
    queue(world, compose.message("topic:news.local", "hear, hear"))
    world.publish("from outside", target=Target(TargetKind.TOPIC, "news.local"))
    world.carry()
    assert sorted((m.topic, m.text) for m in world.handed) == [
        ("news.local", "from outside"),
        ("news.local", "hear, hear"),
    ]
    queue(world, compose.subscription("news.local", on=False))
    world.carry()
    world.publish("unheard", target=Target(TargetKind.TOPIC, "news.local"))
    world.carry()
    assert len(world.handed) == 2


def test_a_request_is_answered() -> None:
    world = connected()
    request = compose.message(f"device:{NAME}", "ping", reply_within=5 * SECOND)
    key = queue(world, request)
    world.carry()
    (asked,) = world.handed
    assert asked.wants_reply
    queue(world, compose.reply(asked, "pong", world.now))
    world.carry()
    answers = [
        session_event
        for session_event in world.happened
        if isinstance(session_event, RequestAnswered)
    ]
    assert [(answer.key, answer.message.text) for answer in answers] == [(key, "pong")]
    assert len(world.handed) == 1


def test_a_publisher_gets_its_answer() -> None:
    world = connected()
    (asked,) = world.publish("how are you?", reply_before=world.now + SECOND)
    world.carry()
    queue(world, compose.reply(world.handed[0], "fine", world.now))
    world.carry()
    world.settle_gateway()
    (row,) = world.store.deliveries(asked)
    assert world.store.messages([row.reply])[row.reply].body == b"fine"


def test_what_the_gateway_refuses_is_told() -> None:
    world = connected()
    key = queue(world, compose.message("device:nobody", "hello?"))
    world.carry()
    (refused,) = [
        session_event for session_event in world.happened if isinstance(session_event, Refused)
    ]
    assert refused.key == key
    assert refused.refusal.code == "not_found"
    assert world.handed == []


def test_context_and_reads_reach_the_gateway() -> None:
    world = connected()
    world.publish("read me")
    world.carry()
    queue(world, compose.context({"battery": 0.5, "links": ["wifi"]}))
    queue(world, compose.read(read=world.handed[0], queue_size=3))
    world.carry()
    assert [
        type(session_event)
        for session_event in world.happened
        if isinstance(session_event, Refused)
    ] == []
    device = world.gateway.registry.find("app", NAME)
    assert device is not None
    assert device.record.context["battery"] == b"0.5"


def test_a_read_of_a_message_alone_is_not_refused() -> None:
    world = connected()
    world.publish("a")
    world.carry()
    queue(world, compose.read(topic="news"))
    world.carry()
    assert not [one for one in world.happened if isinstance(one, Refused)]


def test_a_crash_between_any_two_commits_repeats_nothing_finished() -> None:
    world = connected()
    world.publish(*map(str, range(30)))
    finished: list[str] = []
    for _ in range(60):
        world.dial()
        world.carry_up()
        world.carry_down()
        world.settle_device()
        for message in world.take(finish=False)[:1]:
            world.device.finished(message)
            finished.append(message.text)
        world.settle_device()
        world.crash_device()
    assert finished == [str(number) for number in range(30)]
    world.dial()
    world.carry()
    assert world.states() == {State.DELIVERED: 30}
