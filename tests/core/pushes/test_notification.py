"""Result notifications: every outcome is told until it was heard, and across restarts."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from lasthop.clock import DAY, HOUR, MINUTE, SECOND
from lasthop.core.effects import Notify
from lasthop.core.pushes.notification import NotificationPatience
from lasthop.core.pushes.results import write_result
from lasthop.errors import QuotaExceeded
from lasthop.message import DeliveryMethod, Message, Target, TargetKind
from lasthop.store.tables.pushes import PushesInMemory
from lasthop.wire.hop.frames import Ack, Frame, Headers, MessageFrame, Operation
from lasthop.wire.pap.answers import AnswerVerdict, PapAnswer
from lasthop.wire.pap.submission import read_submission
from tests.core.pushes.initiator import UNREACHABLE, Initiator, user
from tests.core.rig import APP, Rig
from tests.store.peek import rows_of

WITH_RESPONSE = DeliveryMethod.CONFIRMED_WITH_RESPONSE
LATER = PapAnswer(AnswerVerdict.LATER, "it answered with code 4001")
REFUSED = PapAnswer(AnswerVerdict.REFUSED, "it answered with code 2004")


@pytest.fixture
def initiator(rig: Rig) -> Initiator:
    initiator = Initiator(rig)
    initiator.register("watch", "bob")
    return initiator


def notified(rig: Rig) -> list[str]:
    """What the log says of notifications."""
    return [e["kind"] for e in rig.events() if e["kind"].startswith("notif")]


def deliver(rig: Rig, initiator: Initiator, *push_ids: str, **fields: Any) -> None:
    """Push and deliver."""
    for push_id in push_ids:
        initiator.push(push_id, user("bob"), **fields)
    rig.ack(rig.connect("watch"), len(push_ids))


class TestTelling:
    @pytest.mark.conformance("PPG-GEN-S-014")
    def test_an_outcome_is_told_once_it_is_durable(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("bob"))
        channel = rig.connect("watch")
        rig.hear(channel, Ack(1, 1), run=False)
        rig.settle()
        assert not rig.notifies
        rig.run()
        (result,) = initiator.results()
        assert (result.push_id, result.address) == ("1", user("bob"))
        assert (result.state, result.code, result.desc) == ("delivered", 1000, "OK")
        assert result.event_time == rig.now
        assert result.received_time is not None
        assert result.quality is not None
        assert result.quality.method is DeliveryMethod.CONFIRMED
        initiator.hear()
        assert notified(rig) == ["notified"]
        assert not rows_of(rig.store, PushesInMemory).notifications
        rig.crash()
        rig.pass_time(DAY)
        assert not rig.notifies

    def test_without_a_place_to_tell_nobody_is_told(self, rig: Rig, initiator: Initiator) -> None:
        deliver(rig, initiator, "1", notify_to="")
        assert not rig.notifies

    def test_what_was_not_answered_is_told_again_after_a_restart(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        deliver(rig, initiator, "1")
        first = initiator.results()
        rig.crash()
        rig.pass_time(SECOND)
        assert initiator.results() == first
        initiator.hear()
        assert not rows_of(rig.store, PushesInMemory).notifications

    def test_what_fails_is_tried_again_later_and_later(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        deliver(rig, initiator, "1")
        start = rig.now
        times = []
        for _ in range(200):
            times.append(rig.now - start)
            initiator.hear(UNREACHABLE)
            while not rig.notifies and rig.gateway.notifications:
                due = rig.gateway.next_wake()
                assert due is not None
                rig.pass_time(due - rig.now)
            if not rig.notifies:
                break
        pauses = [b - a for a, b in pairwise(times)]
        assert 2 * SECOND < pauses[0] <= 5 * SECOND
        assert all(p <= 30 * MINUTE for p in pauses)
        assert all(b > a / 2 for a, b in pairwise(pauses))
        assert times[-1] > 23 * HOUR
        assert notified(rig)[-1] == "notification_given_up"
        assert notified(rig)[:-1] == ["notification_failed"] * len(times)
        assert not rows_of(rig.store, PushesInMemory).notifications

    def test_attempts_and_pauses_outlive_a_restart(self, rig: Rig, initiator: Initiator) -> None:
        deliver(rig, initiator, "1")
        for _ in range(6):
            initiator.hear(UNREACHABLE)
            rig.pass_time(3 * MINUTE)
        initiator.hear(UNREACHABLE)
        rig.crash()
        rig.pass_time(SECOND)
        assert not rig.notifies
        rig.pass_time(10 * MINUTE)
        assert len(rig.notifies) == 1
        initiator.hear()
        (told,) = [e for e in rig.events() if e["kind"] == "notified"]
        assert told["attempt"] == 8

    def test_a_refusal_of_the_initiator_ends_it(self, rig: Rig, initiator: Initiator) -> None:
        deliver(rig, initiator, "1")
        initiator.hear(REFUSED)
        rig.pass_time(HOUR)
        assert not rig.notifies
        assert notified(rig) == ["notification_given_up"]

    def test_one_that_is_put_off_does_not_hold_up_the_others(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        deliver(rig, initiator, "1")
        initiator.hear(LATER)
        initiator.push("2", user("bob"))
        rig.ack(rig.channels, 2)
        assert [r[0] for r in initiator.hear()] == ["2"]
        rig.pass_time(MINUTE)
        assert [r[0] for r in initiator.hear()] == ["1"]


class TestManners:
    def rig(self, patience: NotificationPatience) -> tuple[Rig, Initiator]:
        rig = Rig()
        rig.identity = dataclasses.replace(rig.identity, patience=patience)
        rig.crash()
        initiator = Initiator(rig)
        initiator.register("watch", "bob")
        return rig, initiator

    def test_a_silent_destination_is_asked_by_one_at_a_time(self) -> None:
        rig, initiator = self.rig(NotificationPatience())
        deliver(rig, initiator, *"123456789")
        assert len(rig.notifies) == 8
        initiator.hear(UNREACHABLE)
        rig.pass_time(10 * MINUTE)
        assert len(rig.notifies) == 1
        initiator.hear()
        assert len(rig.notifies) == 8
        initiator.hear()
        assert not rig.gateway.notifications

    def test_all_destinations_together_have_a_limit(self) -> None:
        rig, initiator = self.rig(NotificationPatience(in_flight=3, window=2))
        for number in range(6):
            initiator.push(str(number), user("bob"), notify_to=f"http://host-{number}.example/")
        rig.ack(rig.connect("watch"), 6)
        assert len(rig.notifies) == 3
        heard = initiator.hear() + initiator.hear()
        assert sorted(result[0] for result in heard) == list("012345")

    def test_who_does_not_listen_gets_nothing_more_in(self) -> None:
        rig, initiator = self.rig(NotificationPatience(waiting=2))
        deliver(rig, initiator, "1", "2")
        with pytest.raises(QuotaExceeded, match="too many results wait"):
            initiator.push("3", user("bob"))
        initiator.push("4", user("bob"), notify_to="http://other.example/")
        initiator.hear()
        initiator.push("3", user("bob"))

    def test_what_waited_for_a_silent_destination_is_given_up_as_well(self) -> None:
        rig, initiator = self.rig(NotificationPatience(give_up_after=HOUR))
        deliver(rig, initiator, *"123456789")
        for _ in range(30):
            initiator.hear(UNREACHABLE)
            rig.pass_time(10 * MINUTE)
        assert not rig.gateway.notifications
        assert notified(rig).count("notification_given_up") == 9


@pytest.mark.conformance("PPG-GEN-S-024", "PPG-GEN-S-026")
class TestResponses:
    def reply(self, key: int, body: bytes = b"yes") -> MessageFrame:
        headers = Headers(operation=Operation.REPLY, in_reply_to=key, content_type="text/plain")
        return MessageFrame(0, None, None, headers, body)

    def entity(self, rig: Rig, notify: Notify) -> bytes | None:
        reply = rig.store.messages([notify.reply]).get(notify.reply)
        kind, body = write_result(notify, reply)
        content = read_submission(kind, body).content
        return content.body if content is not None else None

    @pytest.mark.parametrize("first", ["reply", "acknowledgement"])
    def test_a_devices_answer_comes_along(self, rig: Rig, initiator: Initiator, first: str) -> None:
        key = initiator.push("1", user("bob"), method=WITH_RESPONSE)
        channel = rig.connect("watch")
        frames: list[Frame] = [self.reply(key), Ack(1, 1)]
        for frame in frames if first == "reply" else frames[::-1]:
            assert not rig.notifies
            rig.hear(channel, frame)
        (notify,) = rig.notifies
        assert self.entity(rig, notify) == b"yes"
        initiator.hear()
        assert not rig.gateway.notifications._awaited

    def test_it_is_not_waited_for_without_end(self, rig: Rig, initiator: Initiator) -> None:
        key = initiator.push("1", user("bob"), method=WITH_RESPONSE)
        channel = rig.connect("watch")
        rig.ack(channel, 1)
        rig.pass_time(29 * SECOND)
        assert not rig.notifies
        rig.pass_time(SECOND)
        (notify,) = rig.notifies
        assert self.entity(rig, notify) is None
        rig.hear(channel, self.reply(key))
        assert len(initiator.hear()) == 1
        assert not rig.notifies

    def test_waiting_outlives_a_restart(self, rig: Rig, initiator: Initiator) -> None:
        key = initiator.push("1", user("bob"), method=WITH_RESPONSE)
        rig.ack(rig.connect("watch"), 1)
        rig.crash()
        channel = rig.connect("watch")
        rig.hear(channel, self.reply(key))
        (notify,) = rig.notifies
        assert self.entity(rig, notify) == b"yes"

    def test_another_devices_answer_does_not_count(self, rig: Rig, initiator: Initiator) -> None:
        initiator.register("spy")
        key = initiator.push("1", user("bob"), method=WITH_RESPONSE)
        rig.ack(rig.connect("watch"), 1)
        rig.hear(rig.connect("spy"), self.reply(key, b"mine"))
        assert not rig.notifies
        rig.pass_time(MINUTE)
        (notify,) = rig.notifies
        assert self.entity(rig, notify) is None

    def test_who_did_not_ask_for_content_gets_none(self, rig: Rig, initiator: Initiator) -> None:
        key = initiator.push("1", user("bob"), method=DeliveryMethod.CONFIRMED)
        channel = rig.connect("watch")
        rig.hear(channel, self.reply(key), Ack(1, 1))
        (notify,) = rig.notifies
        assert notify.reply == 0

    def test_headers_that_cannot_be_written_are_left_out(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        deliver(rig, initiator, "1")
        (notify,) = rig.notifies
        reply = Message(1, 1, APP, "device:watch", Target(TargetKind.PUBLISHER, ""), 0, b"x")
        reply = replace(reply, headers=(("X-Good", "1"), ("bad name", "2"), ("X-Bad", "a\r\nb")))
        kind, body = write_result(notify, reply)
        content = read_submission(kind, body).content
        assert content is not None
        assert content.headers == (
            ("Content-Type", "text/plain; charset=utf-8"),
            ("X-Good", "1"),
        )
