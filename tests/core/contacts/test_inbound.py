"""What devices send, and what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lasthop.clock import SECOND
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.names import check_topic, parse_target
from lasthop.errors import InvalidRequest, TooLarge
from lasthop.message import Target, TargetKind
from lasthop.wire.hop.frames import ERROR_TYPE, Ack, Headers, MessageFrame, Operation, Skip
from tests.core.rig import APP, Rig, publication, to


def says(
    seq: int,
    operation: Operation | int,
    topic: str | None = None,
    body: bytes = b"",
    **headers: Any,
) -> MessageFrame:
    return MessageFrame(seq, 77, topic, Headers(operation=operation, **headers), body)


def refusal(rig: Rig, channel: int) -> str:
    """The code in the last answer to a device."""
    frame = rig.messages(channel)[-1]
    assert frame.headers is not None
    assert frame.headers.content_type == ERROR_TYPE
    return str(json.loads(frame.body)["code"])


class TestMessages:
    def test_are_taken_in_the_order_of_their_numbers(self, rig: Rig) -> None:
        tablet = rig.connect("tablet")
        channel = rig.connect()
        rig.hear(channel, publication(1, b"1"))
        assert rig.bodies(tablet) == []
        assert rig.acks(channel) == [0]
        rig.hear(channel, publication(0, b"0"))
        assert rig.bodies(tablet) == [b"0", b"1"]
        assert rig.acks(channel) == [0, 2]

    def test_that_the_device_closed_are_not_waited_for(self, rig: Rig) -> None:
        tablet = rig.connect("tablet")
        channel = rig.connect()
        rig.hear(channel, publication(1, b"1"), Skip(0))
        assert rig.bodies(tablet) == [b"1"]
        assert rig.acks(channel) == [2]

    def test_behind_a_gap_are_let_go_when_the_device_comes_back(self, rig: Rig) -> None:
        """It is told how far they have come without a gap, and may send the rest anew."""
        tablet = rig.connect("tablet")
        channel = rig.connect()
        rig.hear(channel, publication(1, b"1"))
        channel = rig.resume()
        assert rig.welcome(channel).received == 0
        rig.hear(channel, publication(0, b"0"))
        assert rig.bodies(tablet) == [b"0"]
        rig.hear(channel, Skip(1), publication(2, b"1"))
        assert rig.bodies(tablet) == [b"0", b"1"]

    def test_name_the_device_as_their_source(self, rig: Rig) -> None:
        tablet = rig.connect("tablet")
        channel = rig.connect()
        rig.hear(channel, publication(None))
        (frame,) = rig.messages(tablet)
        assert frame.headers is not None
        assert frame.headers.source == "device:phone"
        assert rig.acks(channel) == []

    def test_stay_within_the_app(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.hear(channel, publication(0, target="device:nobody"))
        assert refusal(rig, channel) == "not_found"

    @pytest.mark.parametrize("topic", ["two words", "a..b", "#", "x" * 201])
    def test_for_a_topic_that_cannot_be_are_refused(self, rig: Rig, topic: str) -> None:
        channel = rig.connect()
        rig.hear(channel, MessageFrame(0, None, topic, None, b""))
        assert refusal(rig, channel) in ("invalid_request", "too_large")

    def test_without_a_target_or_with_an_unknown_operation_are_refused(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.hear(channel, MessageFrame(0, None, None, None, b""), says(1, 99))
        assert [f.headers and f.headers.in_reply_to for f in rig.messages(channel)] == [None, 77]
        assert refusal(rig, channel) == "invalid_request"

    def test_that_are_refused_when_the_mailbox_is_full_break_nothing(self) -> None:
        rig = Rig(Limits(open_per_device=1))
        channel = rig.connect()
        rig.publish(to("phone"))
        rig.hear(channel, says(0, 99), says(1, 99))
        assert rig.acks(channel) == [2]
        assert rig.disconnected == []

    def test_say_what_delay_they_tolerate(self, rig: Rig) -> None:
        tablet = rig.connect("tablet")
        channel = rig.connect()
        rig.hear(channel, says(0, Operation.DATA, to="device:tablet", tolerance=1500))
        (frame,) = rig.messages(tablet)
        (message,) = rig.store.messages([frame.key or 0]).values()
        assert message.delay_tolerance == 1_500_000
        assert frame.headers is not None
        assert frame.headers.tolerance is None

    def test_that_tolerate_more_than_a_month_are_refused(self, rig: Rig) -> None:
        rig.connect("tablet")
        channel = rig.connect()
        month = 31 * 86_400_000
        rig.hear(channel, says(0, Operation.DATA, to="device:tablet", tolerance=month + 1))
        assert refusal(rig, channel) == "invalid_request"
        assert b"a delay must be between 0 and 31 days" in rig.messages(channel)[-1].body


class TestReplies:
    def asked(self, rig: Rig) -> tuple[int, int]:
        channel = rig.connect()
        (key,) = rig.publish(to("phone", reply_before=rig.now + SECOND))
        rig.run()
        return channel, key

    def test_are_kept_with_the_delivery_before_and_after_its_end(self, rig: Rig) -> None:
        channel, key = self.asked(rig)
        rig.hear(channel, says(0, Operation.REPLY, body=b"yes", in_reply_to=key))
        reply = rig.row(key).reply
        assert rig.store.messages([reply])[reply].body == b"yes"
        rig.ack(channel, 1)
        assert rig.state(key) is State.DELIVERED
        assert rig.row(key).reply == reply

    def test_count_once(self, rig: Rig) -> None:
        channel, key = self.asked(rig)
        for seq, body in enumerate([b"first", b"second"]):
            rig.hear(channel, says(seq, Operation.REPLY, body=body, in_reply_to=key))
        rig.ack(channel, 1)
        reply = rig.row(key).reply
        assert rig.store.messages([reply])[reply].body == b"first"

    def test_are_told_to_watchers_when_durable(self, rig: Rig) -> None:
        channel, key = self.asked(rig)
        rig.gateway.deliveries.watch(key)
        rig.hear(channel, says(0, Operation.REPLY, in_reply_to=key))
        assert [(c.message, c.state, c.reply) for c in rig.changes] == [
            (key, None, rig.row(key).reply)
        ]

    def test_to_a_device_carry_the_key_under_which_it_knows_its_request(self, rig: Rig) -> None:
        asker = rig.connect("asker")
        phone = rig.connect()
        request = Headers(to="device:phone", reply_within=1000)
        rig.hear(asker, MessageFrame(0, 123, None, request, b"?"))
        (frame,) = rig.messages(phone)
        assert frame.headers is not None
        assert frame.headers.correlation == 123
        answer = Headers(
            operation=Operation.REPLY,
            to="device:asker",
            in_reply_to=frame.key,
            correlation=123,
        )
        rig.hear(phone, MessageFrame(0, None, None, answer, b"!"))
        (reply,) = rig.messages(asker)
        assert reply.headers is not None
        assert reply.headers.in_reply_to == 123

    def test_must_name_what_they_answer(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.hear(channel, says(0, Operation.REPLY))
        assert refusal(rig, channel) == "invalid_request"


class TestReports:
    def test_subscriptions_begin_and_end(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.hear(channel, says(0, Operation.SUBSCRIBE, "news"))
        rig.hear(channel, says(1, Operation.SUBSCRIBE, "news"))
        rig.publish(to("topic:news", b"1"))
        rig.run()
        rig.hear(channel, says(2, Operation.UNSUBSCRIBE, "news"))
        rig.publish(to("topic:news", b"2"))
        rig.run()
        assert rig.bodies(channel) == [b"1"]
        kinds = [e["kind"] for e in rig.events()]
        assert (kinds.count("subscribed"), kinds.count("unsubscribed")) == (1, 1)

    def test_subscriptions_are_limited_and_survive_a_crash(self) -> None:
        rig = Rig(Limits(subscriptions_per_device=1))
        channel = rig.connect()
        rig.hear(channel, says(0, Operation.SUBSCRIBE, "a"), says(1, Operation.SUBSCRIBE, "b"))
        assert refusal(rig, channel) == "quota_exceeded"
        rig.crash()
        assert rig.gateway.registry.named(APP, "phone").record.subscriptions == ["a"]

    def test_context_is_kept(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.hear(channel, says(0, Operation.CONTEXT, body=b'{"battery": 0.5}'))
        rig.crash()
        assert rig.gateway.registry.named(APP, "phone").record.context == {"battery": b"0.5"}

    @pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"a":1}' + bytes(20_000)])
    @pytest.mark.parametrize("operation", [Operation.CONTEXT, Operation.READ])
    def test_nonsense_is_refused(self, rig: Rig, operation: Operation, body: bytes) -> None:
        channel = rig.connect()
        rig.hear(channel, says(0, operation, body=body))
        assert refusal(rig, channel) in ("invalid_request", "too_large")
        assert rig.acks(channel) == [1]

    @pytest.mark.parametrize("number", [-1, 2**63])
    def test_a_read_of_impossible_numbers_is_refused(self, rig: Rig, number: int) -> None:
        channel = rig.connect()
        rig.hear(channel, says(0, Operation.READ, "news", b'{"count": %d}' % number))
        assert refusal(rig, channel) == "invalid_request"

    def test_a_read_is_recorded(self, rig: Rig) -> None:
        channel = rig.connect()
        body = b'{"message": 5, "count": 3, "queue_size": 9}'
        rig.hear(channel, says(0, Operation.READ, "news", body))
        (event,) = [e for e in rig.events() if e["kind"] == "read"]
        assert (event["topic"], event["msg"], event["count"], event["queue_size"]) == (
            "news",
            5,
            3,
            9,
        )


def test_an_acknowledgement_waits_for_everything_that_came_with_it(rig: Rig) -> None:
    rig.connect("tablet")
    channel = rig.connect()
    rig.hear(channel, *[publication(seq) for seq in range(3)], run=False)
    rig.run()
    assert [f for f in rig.sent[channel] if isinstance(f, Ack)] == [Ack(3, 3)]


@pytest.mark.parametrize("text", ["device:a", "user:b", "topic:c.d", "app:"])
def test_targets_are_read(text: str) -> None:
    kind, _, name = text.partition(":")
    assert parse_target(text) == Target(TargetKind(kind), name)
    assert str(parse_target(text)) == text


@pytest.mark.parametrize(
    "text", ["", "device", "device:", "publisher:x", "topic:", "group:", "queue:a b", "push:x"]
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_target(text)


def test_a_topic_is_measured_in_bytes() -> None:
    assert check_topic("é" * 100) == "é" * 100
    with pytest.raises(TooLarge):
        check_topic("é" * 101)
