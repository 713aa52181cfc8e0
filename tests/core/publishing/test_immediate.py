"""Immediate messages: only for those who are there.

About `core/publishing/acceptance.py`, `core/publishing/fanout.py` and `core/deliveries.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import DAY, SECOND
from lasthop.core.deliveries import NOBODY_THERE
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.names import parse_target
from lasthop.core.publishing.submission import Submission
from lasthop.decision.budgets import Limit, Measure
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Preferences
from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import NotReached, Sent
from lasthop.errors import InvalidRequest, NobodyThere
from lasthop.message import Binding, Reliability, Target, TargetKind
from lasthop.wire.hop.frames import Credit, Headers, MessageFrame
from tests.core.rig import APP, Rig, to

UDP = Route(Variant.WSP, "192.0.2.1")


def now_or_never(name: str = "phone", **fields: Any) -> Submission:
    return to(name, b"now", immediate=True, **fields)


def test_who_is_there_gets_it(rig: Rig) -> None:
    channel = rig.connect()
    (key,) = rig.publish(now_or_never())
    rig.run()
    rig.ack(channel, 1)
    assert rig.bodies(channel) == [b"now"]
    assert rig.state(key) is State.DELIVERED


def test_when_nobody_is_there_the_sender_is_told_and_nothing_is_kept(rig: Rig) -> None:
    rig.add("phone")
    with pytest.raises(NobodyThere, match="nobody can be reached now"):
        rig.publish(now_or_never())
    rig.run()
    assert list(rig.store.all_deliveries()) == []
    assert rig.gateway.deliveries.items == {}


def test_of_a_topic_only_those_who_are_there_get_it(rig: Rig) -> None:
    channel = rig.connect()
    rig.add("tablet")
    for name in ("phone", "tablet"):
        rig.gateway.topics.subscribe(APP, name, "news", rig.now)
    (key,) = rig.publish(
        Submission(target=Target(TargetKind.TOPIC, "news"), body=b"now", immediate=True)
    )
    rig.run()
    assert rig.bodies(channel) == [b"now"]
    rows = {row.state for row in rig.store.deliveries(key)}
    assert rows == {State.SENDING, State.UNDELIVERABLE}
    (why,) = [e["reason"] for e in rig.events() if e["kind"] == "undeliverable"]
    assert why == NOBODY_THERE


def test_what_waits_for_credit_is_dropped_when_the_contact_ends(rig: Rig) -> None:
    channel = rig.connect(window=Credit(1, 1 << 20))
    first, second = rig.publish(now_or_never(), now_or_never())
    (later,) = rig.publish(to("phone", b"later"))
    rig.run()
    rig.lose(channel)
    rig.run()
    assert [rig.state(key) for key in (first, second, later)] == [
        State.SENDING,  # It has left.
        State.UNDELIVERABLE,
        State.PENDING,
    ]


def test_what_waits_for_a_limit_waits_as_long_as_the_contact_lasts(rig: Rig) -> None:
    channel = rig.connect()
    none = Preferences(limits=(Limit(0, Measure.MESSAGES, Period.DAY),))
    rig.gateway.preferences.prefer(APP, "phone", none, rig.now)
    (key,) = rig.publish(now_or_never())
    rig.run()
    assert rig.state(key) is State.PENDING
    rig.lose(channel)
    rig.run()
    assert rig.state(key) is State.UNDELIVERABLE


def test_one_that_was_released_and_did_not_leave_is_dropped(rig: Rig) -> None:
    channel = rig.connect()
    (key,) = rig.publish(now_or_never(reliability=Reliability.BEST_EFFORT))
    rig.settle()
    rig.take()
    rig.gateway.channel_lost(channel, "gone", rig.now)
    rig.run()
    assert rig.state(key) is State.UNDELIVERABLE


def test_a_gateway_that_comes_back_finds_nobody_there() -> None:
    rig = Rig()
    rig.connect(window=Credit(1, 1 << 20))
    rig.publish(to("phone"))
    (key,) = rig.publish(now_or_never())
    rig.run()
    rig.crash()
    rig.run()
    assert rig.state(key) is State.UNDELIVERABLE


def test_a_carrier_reaches_a_device_at_once_or_not_at_all(rig: Rig) -> None:
    rig.add("phone", UDP)
    sent, missed = rig.publish(now_or_never(), now_or_never())
    rig.run()
    rig.report(Sent())
    rig.report(NotReached("no session"))
    assert [rig.state(key) for key in (sent, missed)] == [State.SENT, State.UNDELIVERABLE]
    rig.pass_time(DAY)
    assert rig.carries == []


def test_many_that_are_begun_later_are_asked_then() -> None:
    rig = Rig(Limits(fanout_batch=1))
    rig.connect("a")
    for name in "bcdefghi":
        rig.add(name)
    everybody = Submission(target=Target(TargetKind.APP, ""), body=b"now", immediate=True)
    (key,) = rig.publish(everybody)
    rig.run()
    states = [State(row.state) for row in rig.store.deliveries(key)]
    assert sorted(states) == [State.SENDING, *[State.UNDELIVERABLE] * 8]


@pytest.mark.parametrize(
    "target, fields, why",
    [
        ("device:phone", {"deliver_after": 1 << 60}, "a time before which it is not delivered"),
        ("group:all", {"binding": Binding.ATOMIC}, "a decision of its group"),
        ("group:all", {"binding": Binding.CLAIM}, "a decision of its group"),
        ("queue:work", {}, "a queue, which keeps it for a consumer"),
    ],
)
def test_what_has_to_wait_cannot_be_immediate(
    rig: Rig, target: str, fields: dict[str, Any], why: str
) -> None:
    rig.connect()
    asked = Submission(target=parse_target(target), immediate=True, **fields)
    with pytest.raises(InvalidRequest, match=why):
        rig.publish(asked)


def test_a_device_that_sends_to_nobody_is_told(rig: Rig) -> None:
    channel = rig.connect()
    rig.add("watch")
    asked = Headers(to="device:watch", immediate=True)
    rig.hear(channel, MessageFrame(0, None, None, asked, b"now"))
    rig.run()
    (refusal,) = rig.messages(channel)
    assert b'"nobody_there"' in refusal.body


def test_a_device_sends_to_one_that_is_there(rig: Rig) -> None:
    channel = rig.connect()
    other = rig.connect("watch")
    asked = Headers(to="device:watch", immediate=True)
    rig.hear(channel, MessageFrame(0, None, None, asked, b"now"))
    rig.run()
    (frame,) = rig.messages(other)
    assert frame.body == b"now"
    assert frame.headers is not None
    assert not frame.headers.immediate, "whoever gets it was there"


def test_a_deadline_does_not_make_it_wait(rig: Rig) -> None:
    rig.add("phone")
    with pytest.raises(NobodyThere):
        rig.publish(now_or_never(deliver_before=rig.now + SECOND))
