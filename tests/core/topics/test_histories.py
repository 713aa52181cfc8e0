"""Topics that remember: bounds, time, withdrawal, restarts, and devices that catch up; about
`lasthop.core.topics.histories`, `history` and `catching_up`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from lasthop.clock import HOUR, MINUTE, SECOND
from lasthop.core.gateway import Receipt, Submission
from lasthop.core.limits import HistoryBounds, Limits
from lasthop.core.topics.topic_history import (
    ALL,
    MessageHistory,
    RememberedMessage,
    Since,
    parse_since,
)
from lasthop.errors import InvalidRequest, QuotaExceeded
from lasthop.message import Target, TargetKind, short_form
from lasthop.wire.hop.frames import Credit, MessageFrame
from tests.core.rig import APP, SHOP, Rig

NEWS = Target(TargetKind.TOPIC, "news")


def news(body: bytes = b"x", **more: object) -> Submission:
    return Submission(target=NEWS, body=body, **more)  # type: ignore[arg-type]


def seen(rig: Rig, since: Since = ALL, topic: str = "news") -> list[int]:
    """What a reader of the topic is shown."""
    history = rig.gateway.topics.histories.find(APP, topic)
    if history is None:
        return []
    return [entry.key for entry in history.select(since, rig.gateway.durable, rig.now)]


def bodies(rig: Rig, channel: int) -> list[bytes]:
    return [f.body for f in rig.sent[channel] if isinstance(f, MessageFrame)]


class TestRemembering:
    def test_a_topic_remembers_what_nobody_subscribed_to(self, rig: Rig) -> None:
        receipt: Receipt = rig.gateway.publish(APP, SHOP, [news(b"1"), news(b"2")], rig.now)
        assert [tuple(o) for o in receipt.outcomes if o] == [(0, True), (0, True)]
        assert seen(rig) == [], "not durable yet"
        rig.run()
        assert len(seen(rig)) == 2
        assert rig.gateway.topics.histories.remembered == 2

    def test_the_answer_counts_subscriptions_and_is_silent_about_devices(self, rig: Rig) -> None:
        rig.connect()
        rig.gateway.topics.subscribe(APP, "phone", "news", rig.now)
        phone = Submission(target=Target(TargetKind.DEVICE, "phone"))
        receipt = rig.gateway.publish(APP, SHOP, [news(), phone], rig.now)
        assert receipt.outcomes[0] == (1, True)
        assert receipt.outcomes[1] is None

    def test_number_bytes_and_age_bound_a_topic(self, rig: Rig) -> None:
        histories = rig.gateway.topics.histories
        histories.set_bounds(APP, "news", HistoryBounds(messages=3, bytes=1 << 20), rig.now)
        keys = rig.publish(*[news() for _ in range(5)])
        rig.run()
        assert seen(rig) == keys[2:]
        histories.set_bounds(APP, "news", HistoryBounds(bytes=10), rig.now)
        more = rig.publish(news(b"12345"), news(b"123456"))
        rig.run()
        assert seen(rig) == more[1:]
        histories.set_bounds(APP, "news", HistoryBounds(age=HOUR), rig.now)
        rig.pass_time(2 * HOUR)
        assert seen(rig) == []
        assert histories.remembered == 0
        assert histories.topics == 0

    def test_zero_switches_a_topic_or_an_app_off(self, rig: Rig) -> None:
        histories = rig.gateway.topics.histories
        histories.set_bounds(APP, "", HistoryBounds(messages=0), rig.now)
        histories.set_bounds(APP, "kept", HistoryBounds(), rig.now)
        kept = Submission(target=Target(TargetKind.TOPIC, "kept"))
        receipt = rig.gateway.publish(APP, SHOP, [news(), kept], rig.now)
        assert [o and o.kept for o in receipt.outcomes] == [False, True]
        rig.run()
        rig.crash()
        rig.publish(news())
        rig.run()
        assert seen(rig) == []
        rig.gateway.topics.histories.set_bounds(APP, "", None, rig.now)
        keys = rig.publish(news())
        rig.run()
        assert seen(rig) == keys

    def test_wrong_bounds_are_refused(self, rig: Rig) -> None:
        for bounds in (HistoryBounds(age=-1), HistoryBounds(messages=1 << 30)):
            with pytest.raises(InvalidRequest):
                rig.gateway.topics.histories.set_bounds(APP, "news", bounds, rig.now)

    def test_a_message_may_ask_not_to_be_remembered(self, rig: Rig) -> None:
        receipt = rig.gateway.publish(APP, SHOP, [news(headers=(("cache", "no"),))], rig.now)
        assert receipt.outcomes == [(0, False)]

    def test_all_topics_together_are_bounded(self) -> None:
        rig = Rig(limits=Limits(remembered=3))
        first = rig.publish(news(), news(), news())
        other = rig.gateway.publish(APP, SHOP, [Submission(Target(TargetKind.TOPIC, "b"))], rig.now)
        assert other.outcomes == [(0, False)]
        later = rig.publish(news())
        rig.run()
        assert seen(rig) == [*first[1:], *later]

    def test_it_survives_a_crash_with_its_order(self, rig: Rig) -> None:
        soon = news(b"soon", deliver_after=rig.now + 10 * SECOND)
        first, scheduled = rig.publish(news(b"1"), soon)
        rig.run()
        rig.crash()
        assert seen(rig) == [first]
        rig.pass_time(5 * SECOND)
        (second,) = rig.publish(news(b"2"))
        rig.pass_time(6 * SECOND)
        (third,) = rig.publish(news(b"3"))
        rig.run()
        expected = [first, second, scheduled, third]
        assert seen(rig) == expected
        rig.crash()
        assert seen(rig) == expected

    def test_nothing_of_an_unwritten_commit_is_shown_or_restored(self, rig: Rig) -> None:
        (first,) = rig.publish(news(b"1"))
        rig.run()
        rig.publish(news(b"2"))
        rig.crash()
        assert seen(rig) == [first]


class TestLeaving:
    def test_cancelled_messages_leave(self, rig: Rig) -> None:
        first, second = rig.publish(news(), news())
        later = rig.publish(news(deliver_after=rig.now + HOUR))[0]
        rig.run()
        for key in (first, later):
            rig.gateway.cancel(APP, key, rig.now)
        rig.run()
        assert seen(rig) == [second]
        rig.crash()
        rig.pass_time(2 * HOUR)
        assert seen(rig) == [second]

    def test_nobody_cancels_in_another_app(self, rig: Rig) -> None:
        (key,) = rig.publish(news())
        rig.run()
        rig.gateway.cancel("other", key, rig.now)
        assert seen(rig) == [key]

    def test_replaced_messages_leave(self, rig: Rig) -> None:
        rig.publish(news(replace_key="k"))
        rig.run()
        rig.crash()
        (newer,) = rig.publish(news(replace_key="k"))
        (other,) = rig.publish(news(replace_key="k"), source="publisher:other")
        rig.run()
        assert seen(rig) == [newer, other]

    def test_expired_messages_leave(self, rig: Rig) -> None:
        (key,) = rig.publish(news(deliver_before=rig.now + MINUTE))
        rig.run()
        assert seen(rig) == [key]
        rig.pass_time(MINUTE + 1)
        assert seen(rig) == []


class TestSince:
    def test_points(self, rig: Rig) -> None:
        keys = []
        for _ in range(4):
            keys += rig.publish(news())
            rig.pass_time(10 * SECOND)
        now = rig.now

        def since(text: str) -> list[int]:
            return seen(rig, parse_since(text, now))

        assert since("all") == since("0") == keys
        assert since("none") == []
        assert since("latest") == keys[3:]
        assert since(short_form(keys[1])) == since(f"{keys[1]:016x}") == keys[2:]
        assert since("25s") == since("0.25e2s".replace("0.25e2", "25")) == keys[2:]
        assert since(str(now // SECOND)) == []

    @pytest.mark.parametrize("text", ["", "soon", "-5", "2 weeks", "1h30", "9" * 13, "1e9999s"])
    def test_what_is_no_point_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidRequest):
            parse_since(text, 0)

    @given(st.lists(st.tuples(st.sampled_from("ad"), st.integers(0, 40)), max_size=80))
    @settings(max_examples=60)
    def test_a_history_is_what_a_list_would_be(self, steps: list[tuple[str, int]]) -> None:
        history = MessageHistory("app", "news")
        model: list[RememberedMessage] = []
        for number, (what, where) in enumerate(steps, 1):
            if what == "a":
                entry = RememberedMessage(history, number, 1, number, 0)
                history.append(entry, number)
                model.append(entry)
            elif model:
                history.remove(model.pop(where % len(model)))
            assert [*history.newest_first(1 << 60, 0)] == model[::-1]
            assert history.count == history.bytes == len(model)
            assert all(a.place < b.place for a, b in pairwise(model))


class TestCatchingUp:
    def test_a_device_gets_everything_once_and_in_order(self, rig: Rig) -> None:
        rig.publish(*[news(b"%d" % i) for i in range(250)])
        rig.run()
        channel = rig.connect(window=Credit(1000, 1 << 20))
        rig.gateway.topics.subscribe(APP, "phone", "news", rig.now, since=ALL)
        rig.publish(news(b"250"))
        rig.run()
        rig.publish(news(b"251"))
        rig.run()
        assert bodies(rig, channel) == [b"%d" % i for i in range(252)]

    def test_the_last_few(self, rig: Rig) -> None:
        rig.publish(*[news(b"%d" % i) for i in range(9)])
        rig.run()
        channel = rig.connect()
        rig.gateway.topics.subscribe(APP, "phone", "news", rig.now, since=Since(last=2))
        rig.run()
        assert bodies(rig, channel) == [b"7", b"8"]

    def test_a_crash_in_between_loses_and_repeats_nothing(self) -> None:
        for steps in range(8):
            rig = Rig()
            rig.publish(*[news(b"%d" % i) for i in range(150)])
            rig.run()
            rig.connect(run=True)
            rig.gateway.topics.subscribe(APP, "phone", "news", rig.now, since=ALL)
            for _ in range(steps):
                rig.settle()
                if rig.take() is not None or rig.in_flight:
                    rig.write()
            rig.crash()
            if not rig.gateway.registry.named(APP, "phone").record.subscriptions:
                # The device was not answered: it asks again, which changes nothing otherwise.
                rig.gateway.topics.subscribe(APP, "phone", "news", rig.now, since=ALL)
            rig.publish(news(b"150"))
            rig.run()
            session = rig.gateway.deliveries.named(APP, "phone")
            kept = [rig.store.messages([key])[key].body for key in sorted(session.mailbox)]
            assert kept == [b"%d" % i for i in range(151)], steps

    def test_what_the_device_had_before_does_not_come_again(self, rig: Rig) -> None:
        rig.connect()
        rig.gateway.topics.subscribe(APP, "phone", "news", rig.now)
        rig.publish(news(b"1"))
        rig.run()
        rig.gateway.topics.unsubscribe(APP, "phone", "news", rig.now)
        rig.publish(news(b"2"))
        rig.run()
        rig.gateway.topics.subscribe(APP, "phone", "news", rig.now, since=ALL)
        rig.run()
        assert bodies(rig, 1) == [b"1", b"2"]

    def test_a_subscriber_does_not_begin_again(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.publish(news(b"1"))
        rig.run()
        topics = rig.gateway.topics
        assert topics.subscribe(APP, "phone", "news", rig.now)
        assert not topics.subscribe(APP, "phone", "news", rig.now, since=ALL)
        rig.run()
        assert bodies(rig, channel) == []

    def test_patterns_and_filters_begin_now(self, rig: Rig) -> None:
        rig.connect()
        for topic, xpath in (("news.#", None), ("news", "//a")):
            with pytest.raises(InvalidRequest):
                rig.gateway.topics.subscribe(APP, "phone", topic, rig.now, xpath=xpath, since=ALL)

    def test_it_counts_as_a_subscription(self) -> None:
        rig = Rig(limits=Limits(subscriptions_per_device=1))
        rig.connect()
        rig.publish(news())
        rig.run()
        rig.gateway.topics.subscribe(APP, "phone", "news", rig.now, since=ALL)
        with pytest.raises(QuotaExceeded):
            rig.gateway.topics.subscribe(APP, "phone", "other", rig.now, since=ALL)

    def test_it_can_be_ended_at_once(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.publish(news())
        rig.run()
        rig.gateway.topics.subscribe(APP, "phone", "news", rig.now, since=ALL)
        assert rig.gateway.topics.unsubscribe(APP, "phone", "news", rig.now)
        rig.run()
        rig.publish(news())
        rig.run()
        assert bodies(rig, channel) == []


class TestListening:
    def test_what_appears_is_reported_once_it_is_durable(self, rig: Rig) -> None:
        rig.publish(news())
        rig.run()
        rig.gateway.topics.histories.listen(APP, "news")
        (key,) = rig.publish(news(b"1"))
        later, cancelled = rig.publish(
            news(b"2", deliver_after=rig.now + HOUR), news(b"3", deliver_after=rig.now + HOUR)
        )
        (live,) = rig.publish(news(b"4", headers=(("cache", "no"),)))
        rig.run()
        rig.gateway.cancel(APP, cancelled, rig.now)
        assert [a.key for a in rig.appeared] == [key, live]
        assert [bool(a.place) for a in rig.appeared] == [True, False]
        rig.pass_time(HOUR)
        assert [a.key for a in rig.appeared] == [key, live, later]
        assert rig.appeared[-1].message is None
        rig.gateway.topics.histories.unlisten(APP, "news")
        rig.publish(news())
        rig.run()
        assert len(rig.appeared) == 3
