"""Atomic messages: shown to every member or to none, whatever is lost or crashes."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import DAY, SECOND
from lasthop.core.groups.records import GroupRecord
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.errors import InvalidRequest, NotFound, QuotaExceeded, TooLarge
from lasthop.message import GATEWAY, Binding, Reliability
from lasthop.wire.hop.decisions import GroupDecision, GroupVerdict
from lasthop.wire.hop.frames import (
    Ack,
    Dropped,
    Headers,
    MessageFrame,
)
from tests.core.groups.crew import ATOMIC, CLAIM, CREW, JOBS, Crew
from tests.core.rig import APP, to

RELEASE, ABORT = GroupDecision(GroupVerdict.RELEASE), GroupDecision(GroupVerdict.ABORT)


def test_nobody_takes_back_what_was_decided(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    rig.atomic()
    rig.lose(two)
    two = rig.back("two", two, 0)
    rig.hear(two, Ack(1, 0))
    rig.lose(two)  # The decision will have to wait for it.
    rig.hear(one, Ack(1, 0))
    decision = next(
        item.message.key
        for item in rig.gateway.deliveries.items.values()
        if item.message.source == GATEWAY
    )
    with pytest.raises(NotFound, match="no such message"):
        rig.gateway.cancel(APP, decision, rig.now)
    with pytest.raises(NotFound, match="no such message"):
        rig.gateway.replace(APP, decision, "publisher:x", to("group:crew"), rig.now)


def test_an_atomic_message_is_shown_when_every_member_has_it(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    (frame,) = rig.messages(one)
    assert frame.headers is not None
    assert frame.headers.binding is Binding.ATOMIC
    rig.ack(one, 1)
    assert not rig.decisions(one)
    rig.ack(two, 1)
    assert rig.decisions(one) == rig.decisions(two) == [(key, RELEASE)]
    assert rig.all_states(key) == [State.RECEIVED, State.RECEIVED]
    rig.ack(one, 2)
    rig.ack(two, 2, 1)
    assert rig.all_states(key) == [State.DELIVERED, State.RECEIVED]
    rig.ack(two, 2)
    assert rig.all_states(key) == [State.DELIVERED, State.DELIVERED]


def test_a_decision_is_durable_before_anybody_hears_of_it(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.hear(two, Ack(1, 1), run=False)
    rig.settle()
    assert not rig.decisions(one)
    rig.crash()
    again = [rig.back(name, channel, 1) for name, channel in (("one", one), ("two", two))]
    assert [rig.decisions(channel) for channel in again] == [[(key, RELEASE)]] * 2


def test_at_its_deadline_it_is_aborted_for_all(rig: Crew) -> None:
    (one,) = rig.gather("one")
    two = rig.connect("two")
    rig.gateway.groups.join(APP, "two", CREW, rig.now)
    rig.lose(two)
    key = rig.atomic()
    rig.ack(one, 1)
    rig.pass_time(10 * SECOND)
    assert rig.all_states(key) == [State.ABORTED, State.ABORTED]
    assert rig.decisions(one) == [(key, ABORT)]
    two = rig.back("two", two, 0)
    assert not rig.messages(two), "who was sent nothing of it hears nothing of it"
    rig.ack(one, 2)
    assert not rig.gateway.deliveries.items


@pytest.mark.parametrize("crash", [False, True])
def test_a_released_message_has_no_deadline_any_more(rig: Crew, crash: bool) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.ack(two, 1)
    rig.lose(two)
    if crash:
        rig.crash()
    rig.pass_time(DAY)
    two = rig.back("two", two, 1)
    assert rig.decisions(two) == [(key, RELEASE)]
    rig.ack(two, 2)
    assert State.DELIVERED in rig.all_states(key)


def test_who_lost_its_memory_before_the_release_gets_it_again(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    rig.atomic()
    rig.ack(one, 1)
    one = rig.connect("one")
    (frame,) = rig.messages(one)
    assert frame.headers is not None
    assert frame.headers.binding is Binding.ATOMIC
    rig.ack(two, 1)
    assert not rig.decisions(two)
    rig.ack(one, 1)
    assert rig.decisions(two)


def test_who_lost_its_memory_after_the_release_is_shown_it_as_it_comes(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.ack(two, 1)
    one = rig.connect("one")
    frame, *_ = rig.messages(one)
    assert frame.key == key
    assert frame.headers is not None
    assert frame.headers.binding is Binding.NONE
    rig.ack(one, 2)
    assert rig.all_states(key)[0] is State.DELIVERED


def test_who_cannot_show_it_is_sent_it_once_more(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.ack(two, 1)
    rig.hear(one, Dropped(((1, 2),)), Ack(2, 2))
    frame = rig.messages(one)[-1]
    assert frame.key == key
    assert frame.headers is not None
    assert frame.headers.binding is Binding.NONE
    rig.ack(one, 3)
    assert rig.all_states(key)[0] is State.DELIVERED


def test_a_new_numbering_loses_nothing_that_is_held(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1, 0)
    welcome = rig.welcome(one)
    # Numbers that we never gave out: we are a copy of ourselves, and start anew.
    one = rig.connect(
        "one", incarnation=welcome.incarnation, epoch=welcome.epoch, received=5, delivered=0
    )
    rig.ack(two, 1)
    assert rig.decisions(one)[-1] == (key, RELEASE)


@pytest.mark.parametrize("received", [0, 1])
def test_cancelling_takes_it_back_from_everybody(rig: Crew, received: int) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    if received:
        rig.ack(one, 1)
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert (withdrawal.taken_back, withdrawal.too_late) == (2, 0)
    rig.run()
    assert rig.all_states(key) == [State.CANCELLED, State.CANCELLED]
    assert rig.decisions(one) == rig.decisions(two) == [(key, ABORT)]
    rig.ack(two, 2)
    assert rig.all_states(key) == [State.CANCELLED, State.CANCELLED]


def test_after_the_release_it_is_too_late_to_cancel(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.ack(two, 1)
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert (withdrawal.taken_back, withdrawal.too_late) == (0, 2)


def test_what_a_member_has_is_not_sent_again_when_its_body_is_found() -> None:
    rig = Crew(Limits(resident=0))
    one, _ = rig.gather("one", "two")
    key = rig.atomic()
    rig.fetch()
    rig.run()
    assert [frame.key for frame in rig.messages(one)] == [key]
    rig.lose(one)
    one = rig.back("one", one, 0)
    assert rig.fetches
    rig.ack(one, 1, 0)
    rig.fetch()
    assert rig.messages(one) == []


def test_a_number_that_was_called_back_before_it_left_is_closed(rig: Crew) -> None:
    (one,) = rig.gather("one")
    (key,) = rig.publish(to("group:crew", deliver_before=rig.now + SECOND, **ATOMIC))
    rig.settle()
    assert rig.take(flush=True) is not None  # With its acceptance and its number.
    rig.gateway.cancel(APP, key, rig.now)
    rig.run()
    assert not [frame for frame in rig.messages(one) if frame.key == key]
    assert rig.skips(one) == [0]


def test_replacing_goes_to_the_same_members(rig: Crew) -> None:
    one, _ = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.gateway.groups.leave(APP, "two", CREW, rig.now)
    new = to("group:crew", b"better", deliver_before=rig.now + SECOND, **ATOMIC)
    withdrawal, message = rig.gateway.replace(APP, key, "publisher:shop", new, rig.now)
    rig.run()
    assert withdrawal is not None
    assert withdrawal.taken_back == 2
    assert message is not None
    assert len(rig.store.deliveries(int(message[:16], 16))) == 2
    assert rig.all_states(key) == [State.REPLACED, State.REPLACED]


def test_a_replace_key_replaces_the_whole(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    old = rig.atomic(replace_key="plan")
    rig.ack(one, 1)
    new = rig.atomic(replace_key="plan")
    assert rig.all_states(old) == [State.REPLACED, State.REPLACED]
    rig.ack(one, 3)
    rig.ack(two, 3)
    assert rig.decisions(two)[-1] == (new, RELEASE)
    rig.atomic(replace_key="plan")
    assert rig.all_states(new) == [State.RECEIVED, State.RECEIVED]


def test_a_member_that_is_removed_aborts_it(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.lose(two)
    rig.gateway.admin.remove(APP, "two", rig.now)
    rig.run()
    rig.pass_time(1)
    assert rig.all_states(key)[0] is State.ABORTED
    assert rig.decisions(one) == [(key, ABORT)]


def test_a_device_that_cannot_hold_is_sent_nothing_until_it_can(rig: Crew) -> None:
    (one,) = rig.gather("one")
    two = rig.connect("two", features=0)
    rig.gateway.groups.join(APP, "two", CREW, rig.now)
    rig.atomic()
    rig.publish(to("two", b"plain"))
    rig.run()
    assert rig.bodies(two) == [b"plain"]
    two = rig.back("two", two, 1)
    rig.ack(one, 1)
    rig.ack(two, 2)
    assert rig.decisions(one)


@pytest.mark.parametrize(
    "target, fields, error, words",
    [
        ("group:crew", ATOMIC, InvalidRequest, "needs deliver_before"),
        ("one", CLAIM, InvalidRequest, "only a message for a group"),
        ("queue:jobs", CLAIM, InvalidRequest, "only a message for a group"),
        (
            "group:crew",
            {**CLAIM, "reliability": Reliability.BEST_EFFORT},
            InvalidRequest,
            "needs the reliability exactly-once",
        ),
        ("queue:none", {}, NotFound, "no such queue"),
    ],
)
def test_what_cannot_be_promised_is_refused(
    rig: Crew, target: str, fields: dict[str, Any], error: type[Exception], words: str
) -> None:
    rig.gather("one")
    rig.gateway.groups.make(APP, JOBS, GroupRecord(), rig.now)
    with pytest.raises(error, match=words):
        rig.publish(to(target, **fields))


def test_limits_of_bound_messages() -> None:
    rig = Crew(Limits(bound_members=1, open_per_device=1))
    rig.gather("one", "two")
    with pytest.raises(TooLarge, match="too many members"):
        rig.publish(to("group:crew", **CLAIM))
    rig.gateway.groups.leave(APP, "two", CREW, rig.now)
    rig.publish(to("one"))
    with pytest.raises(QuotaExceeded, match="mailbox full"):
        rig.publish(to("group:crew", **CLAIM))


def test_the_device_that_sent_it_hears_what_was_decided(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    headers = Headers(to="group:crew", binding=Binding.ATOMIC, deliver_within=9000)
    rig.hear(one, MessageFrame(0, rig.now // 1000 << 22, None, headers, b"all"))
    rig.ack(two, 1)
    rig.ack(one, 1)
    assert rig.decisions(one)[-1][1] == GroupDecision(GroupVerdict.RELEASED)
