"""Queues: one consumer at a time has each message, and somebody has it at last."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lasthop.clock import SECOND
from lasthop.core.groups.queue import SharedQueue
from lasthop.core.groups.records import GroupRecord
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.errors import Conflict, NotFound, QuotaExceeded
from lasthop.store.groups import GroupMessageRow
from tests.core.groups.crew import JOBS, Crew
from tests.core.rig import APP, SHOP, publication, to


def jobs(rig: Crew, *names: str, **terms: Any) -> list[int]:
    rig.gateway.groups.make(APP, JOBS, GroupRecord(**terms), rig.now)
    return rig.gather(*names, into=JOBS)


def queue_of(rig: Crew) -> SharedQueue:
    return rig.gateway.groups.queue(APP, JOBS.name)


def job(rig: Crew, body: bytes = b"job", **fields: Any) -> int:
    (key,) = rig.publish(to("queue:jobs", body, **fields))
    rig.run()
    return key


def test_messages_go_round_the_consumers(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two")
    for n in range(4):
        job(rig, b"%d" % n)
    assert sorted(rig.bodies(one) + rig.bodies(two)) == [b"0", b"1", b"2", b"3"]
    assert len(rig.bodies(one)) == len(rig.bodies(two)) == 2
    (frame, _) = rig.messages(one)
    assert frame.headers is not None
    assert frame.headers.queue == "jobs"


def test_without_a_consumer_they_wait_durably_and_in_order(rig: Crew) -> None:
    jobs(rig)
    for n, priority in enumerate((4, 4, 9)):
        job(rig, b"%d" % n, priority=priority)
    rig.crash()
    assert rig.gateway.groups.queue(APP, "jobs").length == 3
    (one,) = rig.gather("one", into=JOBS)
    assert rig.bodies(one) == [b"2", b"0", b"1"]


def test_a_consumer_has_so_many_at_a_time(rig: Crew) -> None:
    (one,) = jobs(rig, "one", prefetch=2)
    for n in range(3):
        job(rig, b"%d" % n)
    assert len(rig.bodies(one)) == 2
    rig.ack(one, 2, 1)
    assert len(rig.bodies(one)) == 3


def test_what_takes_too_long_goes_to_another_marked_as_such(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two", patience=5 * SECOND)
    key = job(rig)
    rig.ack(one, 1, 0)
    rig.pass_time(5 * SECOND)
    (frame,) = rig.messages(two)
    assert frame.headers is not None
    assert frame.headers.redelivered
    rig.ack(two, 1)
    assert rig.all_states(key) == [State.REASSIGNED, State.DELIVERED]
    assert not rig.gateway.deliveries.items


def test_with_nobody_else_there_a_consumer_may_go_on(rig: Crew) -> None:
    (one,) = jobs(rig, "one", patience=5 * SECOND)
    key = job(rig)
    rig.ack(one, 1, 0)
    rig.pass_time(60 * SECOND)
    assert len(rig.messages(one)) == 1
    rig.ack(one, 1)
    assert rig.all_states(key) == [State.DELIVERED]


def test_it_may_come_back_to_who_had_it_first(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two", patience=5 * SECOND)
    key = job(rig)
    rig.lose(one)
    rig.pass_time(6 * SECOND)
    assert rig.messages(two)
    rig.lose(two)
    one = rig.back("one", one, 1, 0)
    assert not rig.messages(one)
    rig.pass_time(6 * SECOND)
    frame = rig.messages(one)[-1]
    assert frame.key == key
    assert frame.headers is not None
    assert frame.headers.redelivered
    rig.ack(one, 2)
    assert rig.all_states(key) == [State.DELIVERED, State.REASSIGNED]


def test_whoever_had_it_under_an_earlier_number_may_have_done_it_in_time(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two", patience=5 * SECOND)
    key = job(rig, deliver_before=rig.now + 20 * SECOND)
    rig.lose(one)
    rig.pass_time(6 * SECOND)
    rig.lose(two)
    one = rig.back("one", one, 1, 0)
    rig.pass_time(6 * SECOND)
    assert rig.messages(one)[-1].key == key
    rig.lose(one)
    rig.pass_time(10 * SECOND)
    rig.back("one", one, 1, 0)
    assert rig.all_states(key)[0] is State.TIMED_OUT


def test_what_has_not_left_is_given_to_another_at_once(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two")
    rig.publish(to("queue:jobs"))
    rig.settle()
    rig.take(flush=True)
    rig.gateway.channel_lost(one, "broken", rig.now)
    rig.write()
    rig.run()
    rig.pass_time(61 * SECOND)
    assert len(rig.messages(one)) + len(rig.messages(two)) == 1


def test_a_consumer_that_leaves_or_is_removed_leaves_its_work_to_others(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two", patience=5 * SECOND)
    key = job(rig)
    other = job(rig)
    rig.gateway.groups.leave(APP, "one", JOBS, rig.now)
    rig.gateway.admin.remove(APP, "two", rig.now)
    rig.run()
    rig.gather("three", into=JOBS)
    rig.pass_time(6 * SECOND)
    assert {f.key for f in rig.messages(max(rig.sent))} == {key, other}
    assert not rig.messages(two)[1:]
    assert one


def test_a_waiting_message_expires_and_is_cancelled(rig: Crew) -> None:
    jobs(rig)
    late = job(rig, deliver_before=rig.now + SECOND)
    gone = job(rig)
    early = job(rig, deliver_after=rig.now + 5 * SECOND)
    withdrawal = rig.gateway.cancel(APP, gone, rig.now)
    assert withdrawal is not None
    assert withdrawal.taken_back == 1
    rig.pass_time(2 * SECOND)
    states = [e["state"] for e in rig.events() if e["kind"] == "settled"]
    assert states == ["CANCELLED", "EXPIRED"]
    assert {row.open for row in rig.store.find(GroupMessageRow, [late, gone]).values()} == {False}
    (one,) = rig.gather("one", into=JOBS)
    assert not rig.messages(one)
    rig.pass_time(5 * SECOND)
    assert [f.key for f in rig.messages(one)] == [early]


def test_what_has_left_cannot_be_cancelled(rig: Crew) -> None:
    jobs(rig, "one")
    key = job(rig)
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert (withdrawal.taken_back, withdrawal.too_late) == (0, 1)


def test_a_waiting_message_is_replaced(rig: Crew) -> None:
    jobs(rig)
    old = job(rig)
    _, new = rig.gateway.replace(APP, old, "p:x", to("queue:jobs", b"new"), rig.now)
    assert new is not None
    job(rig, b"first", replace_key="k")
    job(rig, b"second", replace_key="k")
    (one,) = rig.gather("one", into=JOBS)
    assert rig.bodies(one) == [b"new", b"second"]


def test_a_replace_key_of_another_publisher_is_another_key(rig: Crew) -> None:
    jobs(rig)
    job(rig, b"first", replace_key="k")
    rig.publish(to("queue:jobs", b"other", replace_key="k"), source="publisher:other")
    job(rig, b"second", replace_key="k")
    rig.crash()
    job(rig, b"third", replace_key="k")
    (one,) = rig.gather("one", into=JOBS)
    assert rig.bodies(one) == [b"other", b"third"]


def test_devices_cannot_fill_a_queue_until_publishers_are_refused() -> None:
    rig = Crew(Limits(queue_length=10, publishers_percent=20))
    jobs(rig)
    phone = rig.connect()
    for seq in range(12):
        rig.hear(phone, publication(seq, target="queue:jobs"))
    assert queue_of(rig).length == 8
    rig.ack(phone, 4)
    assert [json.loads(frame.body)["code"] for frame in rig.messages(phone)] == [
        "quota_exceeded"
    ] * 4
    for _ in range(2):
        job(rig)
    with pytest.raises(QuotaExceeded, match=r"the queue is full .*limit=10"):
        job(rig)


def test_a_batch_is_taken_into_a_queue_as_a_whole_or_not_at_all() -> None:
    rig = Crew(Limits(queue_length=3))
    jobs(rig)
    job(rig)
    with pytest.raises(QuotaExceeded, match=r"item=2"):
        rig.publish(*[to("queue:jobs")] * 3)
    assert queue_of(rig).length == 1
    rig.publish(*[to("queue:jobs")] * 2)
    assert queue_of(rig).length == 3


def test_a_message_of_a_full_queue_can_still_be_replaced() -> None:
    rig = Crew(Limits(queue_length=1))
    jobs(rig)
    key = job(rig, b"old")
    _, new = rig.gateway.replace(APP, key, SHOP, to("queue:jobs", b"new"), rig.now)
    assert new is not None
    (one,) = rig.gather("one", into=JOBS)
    assert rig.bodies(one) == [b"new"]


def test_a_queue_has_a_limit_and_is_removed_when_it_is_empty() -> None:
    rig = Crew(Limits(queue_length=1))
    jobs(rig)
    key = job(rig)
    with pytest.raises(QuotaExceeded, match="the queue is full"):
        job(rig)
    with pytest.raises(Conflict, match="the queue is not empty"):
        rig.gateway.groups.remove(APP, JOBS, rig.now)
    rig.gateway.cancel(APP, key, rig.now)
    rig.gateway.groups.remove(APP, JOBS, rig.now)
    with pytest.raises(NotFound, match="no such queue"):
        job(rig)


def test_a_consumer_that_cannot_take_it_leaves_it_to_others(rig: Crew) -> None:
    (small,) = [rig.connect("small", max_frame=8192)]
    rig.gateway.groups.make(APP, JOBS, GroupRecord(), rig.now)
    rig.gateway.groups.join(APP, "small", JOBS, rig.now)
    key = job(rig, b"x" * 10_000)
    assert not rig.messages(small)
    assert rig.all_states(key) == [State.UNDELIVERABLE]
    (big,) = rig.gather("big", into=JOBS)
    assert [f.key for f in rig.messages(big)] == [key]
    rig.ack(big, 1)
    assert not rig.gateway.deliveries.items


@pytest.mark.parametrize("when", range(6))
def test_a_crash_at_any_commit_gives_a_job_to_somebody(when: int) -> None:
    rig = Crew()
    one, two = jobs(rig, "one", "two", patience=5 * SECOND)
    (key,) = rig.publish(to("queue:jobs"))
    rig.run_commits(when)
    rig.crash()
    if not rig.store.messages([key]):
        return
    one, two = rig.back("one", one, 0), rig.back("two", two, 0)
    rig.pass_time(12 * SECOND)
    frames = [f for c in (one, two) for f in rig.messages(c) if f.key == key]
    assert frames
    unmarked = [f for f in frames if f.headers is None or not f.headers.redelivered]
    assert len(unmarked) <= 1
