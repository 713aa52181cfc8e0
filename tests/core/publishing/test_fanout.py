"""One message for many: stored once, its deliveries in batches, each lane in order."""

from __future__ import annotations

from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.publishing.acceptance import Withdrawal
from lasthop.core.publishing.fanout import BATCHES_PER_TURN
from lasthop.core.registry import DeviceRecord
from tests.core.rig import APP, SHOP, Rig, to


def fleet(count: int = 5, *, batch: int = 2) -> Rig:
    """Devices d1, d2 ... that are subscribed to the news and belong to Ann."""
    rig = Rig(Limits(fanout_batch=batch))
    for i in range(1, count + 1):
        rig.gateway.admin.register(APP, f"d{i}", DeviceRecord(user="ann"), rig.now)
        rig.gateway.topics.subscribe(APP, f"d{i}", "news", rig.now)
    rig.run()
    return rig


def one_commit(rig: Rig) -> int:
    """How many deliveries the next commit begins."""
    before = len(list(rig.store.all_deliveries()))
    rig.settle()
    assert rig.take() is not None, "the fan-out dawdles"
    rig.write()
    return len(list(rig.store.all_deliveries())) - before


def test_no_commit_begins_more_than_a_batch_and_none_waits_for_its_time() -> None:
    rig = fleet(5)
    rig.publish(to("topic:news"))
    assert [one_commit(rig) for _ in range(3)] == [2, 2, 1]
    assert rig.store.counts().messages == 1
    assert rig.store.counts().fanouts == 0
    assert rig.gateway.idle


def test_many_messages_for_many_are_begun_in_bounded_turns_and_in_order() -> None:
    rig = fleet(4, batch=4)
    phone = rig.connect("d4")
    rig.publish(*(to("topic:news", b"%d" % n) for n in range(20)))
    begun = [one_commit(rig)]
    while rig.store.counts().fanouts:
        begun.append(one_commit(rig))
    rig.run()
    assert sum(begun) == 80
    assert max(begun) <= BATCHES_PER_TURN * 4
    assert rig.bodies(phone) == [b"%d" % n for n in range(20)]
    assert rig.store.counts().fanouts == 0


def test_each_message_goes_to_who_is_subscribed_when_it_comes() -> None:
    rig = fleet(3, batch=10)
    keys = rig.publish(to("topic:news"), to("topic:news"))
    rig.gateway.topics.unsubscribe(APP, "d2", "news", rig.now)
    keys += rig.publish(to("topic:news"))
    rig.gateway.topics.subscribe(APP, "d2", "news", rig.now)
    rig.gateway.admin.remove(APP, "d1", rig.now)
    keys += rig.publish(to("topic:news"))
    rig.run()
    found = [[row.device for row in rig.store.deliveries(key)] for key in keys]
    assert found == [[1, 2, 3], [1, 2, 3], [1, 3], [2, 3]]


def test_lanes_take_turns_when_there_are_too_many_for_one() -> None:
    rig = fleet(40)
    for n in range(10):
        rig.publish(to("topic:news"), source=f"publisher:{n}")
    begun = [one_commit(rig)]
    while rig.store.counts().fanouts:
        begun.append(one_commit(rig))
    assert sum(begun) == 400
    assert max(begun[1:]) <= BATCHES_PER_TURN * 2
    assert rig.store.counts().fanouts == 0


def test_a_small_one_is_done_in_its_first_commit_and_leaves_no_trace() -> None:
    rig = fleet(2)
    rig.publish(to("topic:news"))
    rig.settle()
    commit = rig.take()
    assert commit is not None
    assert len(commit.deliveries) == 2
    assert commit.fanouts == {}


def test_it_goes_on_after_a_crash_at_any_commit() -> None:
    for crash_at in range(4):
        rig = fleet(5)
        (key,) = rig.publish(to("topic:news"))
        rig.run_commits(max(1, crash_at))
        rig.crash()
        rig.run()
        assert [row.device for row in rig.store.deliveries(key)] == [1, 2, 3, 4, 5]
        assert len([e for e in rig.events() if e["kind"] == "accepted"]) == 5


def test_it_goes_on_though_everything_begun_so_far_has_ended() -> None:
    rig = fleet(5)
    (key,) = rig.publish(to("topic:news"))
    rig.take()
    for name in ("d1", "d2", "d3", "d4"):
        rig.gateway.admin.remove(APP, name, rig.now)
    rig.write()
    rig.run_commits(1)
    assert not any(row.open for row in rig.store.deliveries(key))
    assert rig.store.counts().fanouts == 1
    rig.crash()
    rig.run()
    states = {row.device: State(row.state) for row in rig.store.deliveries(key)}
    gone = State.UNDELIVERABLE
    assert states == {1: gone, 2: gone, 5: State.PENDING}


def test_when_nobody_is_left_it_ends() -> None:
    rig = fleet(3)
    rig.publish(to("user:ann"))
    rig.run_commits(1)
    for name in ("d1", "d2", "d3"):
        rig.gateway.admin.remove(APP, name, rig.now)
    rig.take(flush=True)
    rig.store.apply(*rig.in_flight)
    rig.crash()
    rig.run()
    assert rig.store.counts().fanouts == 0
    assert rig.gateway.deliveries.items == {}


def test_cancelling_stops_it() -> None:
    rig = fleet(5)
    (key,) = rig.publish(to("topic:news"))
    assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(5, 0)
    rig.run()
    assert rig.states() == {State.CANCELLED: 2}
    assert rig.store.counts().fanouts == 0
    assert rig.gateway.deliveries.items == {}


def test_replacing_reaches_those_who_were_still_to_come() -> None:
    rig = fleet(5)
    d1 = rig.connect("d1")
    (key,) = rig.publish(to("topic:news", b"old"))
    rig.settle()
    withdrawal, _ = rig.gateway.replace(APP, key, SHOP, to("topic:news", b"new"), rig.now)
    assert withdrawal == Withdrawal(4, 1)
    rig.run()
    assert rig.bodies(d1) == [b"old"]
    assert rig.bodies(rig.connect("d5")) == [b"new"]


def test_a_later_message_of_the_same_source_waits_its_turn() -> None:
    rig = fleet(5)
    channel = rig.connect("d5")
    rig.publish(to("topic:news", b"1"))
    rig.publish(to("d5", b"2"))
    rig.publish(to("topic:news", b"3"), to("d5", b"4"))
    rig.run()
    assert rig.bodies(channel) == [b"1", b"2", b"3", b"4"]


def test_a_later_message_waits_its_turn_across_a_crash() -> None:
    rig = fleet(5)
    rig.publish(to("topic:news", b"1"), to("d5", b"2"))
    rig.run_commits(1)
    rig.crash()
    assert rig.bodies(rig.connect("d5")) == [b"1", b"2"]


def test_what_is_cancelled_while_it_waits_its_turn_has_an_end_in_the_log() -> None:
    rig = fleet(5)
    _, waiting = rig.publish(to("topic:news"), to("d5"))
    rig.settle()
    rig.take()
    assert rig.gateway.cancel(APP, waiting, rig.now) == Withdrawal(1, 0)
    rig.write()
    rig.run()
    assert rig.state(waiting) is State.CANCELLED
    assert [e["kind"] for e in rig.events() if e.get("msg") == waiting][-1] == "cancelled"


def test_others_do_not_wait_for_it() -> None:
    rig = fleet(5)
    rig.publish(to("topic:news", b"1"))
    (other_source,) = rig.publish(to("d5"), source="publisher:other")
    (urgent,) = rig.publish(to("d5", priority=9))
    (begun,) = rig.publish(to("d1"))
    rig.run_commits(1)
    for key in (other_source, urgent, begun):
        assert rig.state(key) is State.PENDING


def test_many_that_wait_are_begun_together() -> None:
    rig = fleet(5, batch=4)
    rig.publish(to("topic:news"))
    rig.publish(*[to("d5", b"%d" % i) for i in range(40)])
    commits = rig.gateway.durable
    rig.run()
    assert rig.gateway.durable - commits <= 13
    assert rig.bodies(rig.connect("d5"))[1:] == [b"%d" % i for i in range(40)]


def test_who_subscribes_later_is_not_addressed() -> None:
    rig = fleet(5)
    (key,) = rig.publish(to("topic:news"))
    rig.gateway.admin.register(APP, "late", DeviceRecord(), rig.now)
    rig.gateway.topics.subscribe(APP, "late", "news", rig.now)
    rig.run()
    assert len(rig.store.deliveries(key)) == 5


def test_an_end_among_many_searches_nobody() -> None:
    rig = fleet(5, batch=9)
    (key,) = rig.publish(to("topic:news"))
    item = rig.gateway.deliveries.items[key]
    for name in ("d2", "d5", "d1"):
        rig.gateway.admin.remove(APP, name, rig.now)
        assert [delivery.index for delivery in item.deliveries] == list(range(len(item.deliveries)))
    assert {delivery.session.device.name for delivery in item.deliveries} == {"d3", "d4"}
