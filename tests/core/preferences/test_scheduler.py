"""Devices with preferences: which link carries a message, what is held, and what it may cost."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import DAY, HOUR, MINUTE, SECOND
from lasthop.core.identity import Identity
from lasthop.core.lifecycle import State
from lasthop.core.preferences.feature import preferences_of
from lasthop.decision.budgets import Limit, Measure
from lasthop.decision.choice import QueueTerms
from lasthop.decision.constraints import QuietHours
from lasthop.decision.cost import Weights
from lasthop.decision.link_calendar import CalendarEntry, LinkCalendar
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Cap, DigestTimes, Preferences
from lasthop.errors import InvalidRequest
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    CloseCode,
    Headers,
    MessageFrame,
    Operation,
    Wanted,
)
from tests.core.ranked.phone import Phone
from tests.core.rig import APP, START, Rig, to

WIFI = Link("wifi", Tariff(), energy=1000, latency=SECOND // 4, coverage=100)
MNO = Link(
    "mno",
    Tariff(per_volume=30_000_000, volume=6 << 30),
    energy=1500,
    latency=SECOND // 2,
    coverage=1000,
)
SATELLITE = Link("satellite", Tariff(per_unit=1_000_000), latency=SECOND, coverage=100_000)
EVERY_DAY = tuple(range(7))


@pytest.fixture
def rig() -> Rig:
    return Rig()


def prefer(rig: Rig, **preferences: Any) -> None:
    """The phone says what it prefers."""
    rig.gateway.preferences.prefer(
        APP, "phone", Preferences(**{"links": (WIFI, MNO), **preferences}), rig.now
    )
    rig.run()


def phone(rig: Rig, link: str = "mno", **preferences: Any) -> int:
    """A phone that is there and has preferences."""
    channel = rig.connect(link=link)
    prefer(rig, **preferences)
    return channel


def reasons(rig: Rig, kind: str) -> list[str]:
    return [event["reason"] for event in rig.events() if event["kind"] == kind]


def daily(amount: int, measure: Measure, **scope: Any) -> Limit:
    return Limit(amount, measure, Period.DAY, **scope)


# Which link.


def test_the_cheaper_of_two_links_carries_it(rig: Rig) -> None:
    mno = phone(rig)
    wifi = rig.join(link="wifi")
    rig.publish(to("phone", b"a"))
    rig.run()
    assert (rig.bodies(wifi), rig.bodies(mno)) == ([b"a"], [])
    assert "wifi has the lowest cost" in reasons(rig, "released")[0]
    assert [e["link"] for e in rig.events() if e["kind"] == "released"] == ["wifi"]
    assert "mno costs" in reasons(rig, "released")[0]


def test_the_newer_link_is_not_taken_because_it_is_newer(rig: Rig) -> None:
    wifi = phone(rig, "wifi")
    mno = rig.join(link="mno")
    rig.publish(to("phone", b"a"))
    rig.run()
    assert (rig.bodies(wifi), rig.bodies(mno)) == ([b"a"], [])
    assert [e["link"] for e in rig.events() if e["kind"] == "released"] == ["wifi"]


def test_weights_belong_to_a_queue(rig: Rig) -> None:
    wifi = phone(
        rig,
        "wifi",
        queues=(QueueTerms("far", weights=Weights(price=0, energy=0, latency=0, coverage=1)),),
    )
    mno = rig.join(link="mno")
    rig.publish(to("phone", b"a", queue="far"), to("phone", b"b"))
    rig.run()
    assert (rig.bodies(mno), rig.bodies(wifi)) == ([b"a"], [b"b"])


def test_a_queue_that_may_not_use_a_link_waits_for_another(rig: Rig) -> None:
    mno = phone(rig, queues=(QueueTerms("photos", links=("wifi",)),))
    rig.publish(to("phone", b"a", queue="photos"), to("phone", b"b", queue="photos"))
    rig.publish(to("phone", b"c"))
    rig.run()
    assert rig.bodies(mno) == [b"c"]
    assert reasons(rig, "held") == ["photos does not use mno"]
    wifi = rig.join(link="wifi")
    assert rig.bodies(wifi) == [b"a", b"b"]


def test_a_released_message_whose_link_is_gone_chooses_again(rig: Rig) -> None:
    mno = phone(rig)
    wifi = rig.join(link="wifi")
    rig.publish(to("phone", b"a"))
    rig.settle()
    rig.take()
    rig.gateway.channel_lost(wifi, "broken", rig.now)
    rig.run()
    assert (rig.bodies(wifi), rig.bodies(mno)) == ([], [b"a"])


def test_a_missing_receipt_is_missed_as_soon_as_the_link_should_have_brought_it(rig: Rig) -> None:
    wifi = phone(rig, "wifi")
    mno = rig.join(link="mno")
    rig.publish(to("phone", b"a"))
    rig.run()
    rig.pass_time(4 * SECOND // 4 - 1)
    assert (rig.bodies(wifi), rig.bodies(mno)) == ([b"a"], [])
    rig.pass_time(1)
    assert (rig.bodies(wifi), rig.bodies(mno)) == ([b"a"], [b"a"])
    told = [event for event in rig.events() if event["kind"] == "transmitted"]
    assert told[0]["link"] == "wifi"


def test_what_no_link_may_repeat_waits_and_leaves_when_one_comes(rig: Rig) -> None:
    wifi = phone(rig, "wifi", queues=(QueueTerms("photos", links=("wifi",)),))
    mno = rig.join(link="mno")
    rig.publish(to("phone", b"a", queue="photos"))
    rig.run()
    rig.lose(wifi)
    assert rig.bodies(mno) == []
    again = rig.join(link="wifi")
    assert rig.bodies(again) == [b"a"]


def test_what_no_link_may_repeat_is_not_repeated_once_it_is_acknowledged(rig: Rig) -> None:
    # What a feed sends is under way until its number is closed, also if the device has it.
    reader = Phone(rig)
    reader.connect(link="wifi")
    reader.subscribe(policy="buffer", prefetch_limit=2)
    had = reader.received
    prefer(rig, queues=(QueueTerms("photos", links=("wifi",)),))
    mno = rig.join(link="mno", received=had, features=int(ALL_FEATURES))
    rig.publish(to("topic:news", b"a", rank=1, queue="photos"))
    rig.run()
    rig.lose(reader.channel)
    rig.ack(mno, had + 1, had)
    rig.lose(mno)
    features = int(ALL_FEATURES)
    again = rig.resume(link="wifi", received=had + 1, delivered=had, features=features)
    assert rig.bodies(again) == []


# When.


def test_quiet_hours_hold_and_then_let_go(rig: Rig) -> None:
    midnight = START - START % DAY
    now = (START - midnight) // MINUTE
    quiet = QuietHours("UTC", start=int(now) - 1, end=int(now) + 59, override=5.0)
    channel = phone(rig, quiet=(quiet,))
    rig.publish(to("phone", b"a"), to("phone", b"b"))
    rig.publish(to("phone", b"urgent", rank=7.0, queue="alarms"))
    rig.run()
    assert rig.bodies(channel) == [b"urgent"]
    rig.pass_time(HOUR)
    assert rig.bodies(channel) == [b"urgent", b"a", b"b"]


def test_a_message_that_quiet_hours_leave_no_moment_is_refused_with_the_reason(rig: Rig) -> None:
    midnight = START - START % DAY
    now = int((START - midnight) // MINUTE)
    phone(rig, quiet=(QuietHours("UTC", start=now - 1, end=now + 59),))
    with pytest.raises(InvalidRequest, match="no moment satisfies all constraints") as refused:
        rig.publish(to("phone", deliver_before=rig.now + 10 * MINUTE))
    assert "deliver_before" in str(refused.value.fields["conflict"])
    # One among many is not a reason to refuse the others theirs.
    rig.gateway.topics.subscribe(APP, "phone", "news", rig.now)
    (key,) = rig.publish(to("topic:news", deliver_before=rig.now + 10 * MINUTE))
    rig.run()
    assert rig.state(key) is State.SUPPRESSED


def test_what_an_absence_has_delayed_is_sent_however_little_delay_was_tolerated(rig: Rig) -> None:
    midnight = START - START % DAY
    now = int((START - midnight) // MINUTE)
    channel = phone(rig, quiet=(QuietHours("UTC", start=now + 120, end=now + 180),))
    rig.lose(channel)
    (key,) = rig.publish(to("phone", b"a", delay_tolerance=MINUTE))
    rig.run()
    rig.pass_time(HOUR)
    again = rig.connect(link="mno")
    assert rig.bodies(again) == [b"a"]
    assert rig.state(key) is State.SENDING


def test_a_message_that_tolerates_less_than_its_queue_waits_for_less(rig: Rig) -> None:
    calendar = LinkCalendar.of([CalendarEntry("wifi", EVERY_DAY, 0, 24, 0.5)], zone_name="UTC")
    mno = phone(rig, calendar=calendar, queues=(QueueTerms("news", max_delay=10 * MINUTE),))
    rig.publish(to("phone", b"a", queue="news", delay_tolerance=2 * MINUTE))
    rig.run()
    assert rig.bodies(mno) == []
    rig.pass_time(MINUTE)
    assert rig.bodies(mno) == [b"a"]


def test_a_tolerant_queue_waits_for_the_better_link_and_no_longer(rig: Rig) -> None:
    calendar = LinkCalendar.of([CalendarEntry("wifi", EVERY_DAY, 0, 24, 0.5)], zone_name="UTC")
    mno = phone(rig, calendar=calendar, queues=(QueueTerms("news", max_delay=10 * MINUTE),))
    rig.publish(to("phone", b"a", queue="news"))
    rig.run()
    assert rig.bodies(mno) == []
    assert Wanted(("wifi",)) in rig.sent[mno]
    rig.pass_time(5 * MINUTE)
    assert rig.bodies(mno) == [b"a"]
    assert "not waited for any longer" in reasons(rig, "released")[0]


def test_the_better_link_ends_the_wait(rig: Rig) -> None:
    calendar = LinkCalendar.of([CalendarEntry("wifi", EVERY_DAY, 0, 24, 0.9)], zone_name="UTC")
    phone(rig, calendar=calendar, queues=(QueueTerms("news", max_delay=HOUR),))
    rig.publish(to("phone", b"a", queue="news"), to("phone", b"b", queue="news"))
    rig.run()
    rig.pass_time(MINUTE)
    wifi = rig.join(link="wifi")
    assert rig.bodies(wifi) == [b"a", b"b"]


def test_what_is_held_can_be_cancelled_and_expires(rig: Rig) -> None:
    phone(rig, queues=(QueueTerms("photos", links=("wifi",)),))
    first, second, third = rig.publish(
        to("phone", b"a", queue="photos"),
        to("phone", b"b", queue="photos", deliver_before=rig.now + MINUTE),
        to("phone", b"c", queue="photos"),
    )
    rig.run()
    assert rig.gateway.cancel(APP, first, rig.now) is not None
    rig.pass_time(2 * MINUTE)
    assert (rig.state(first), rig.state(second)) == (State.CANCELLED, State.EXPIRED)
    wifi = rig.join(link="wifi")
    assert rig.bodies(wifi) == [b"c"]
    rig.ack(wifi, 1)
    assert rig.state(third) is State.DELIVERED


# What it may cost.


def test_a_limit_holds_the_rest_until_the_next_day(rig: Rig) -> None:
    channel = phone(rig, limits=(daily(2, Measure.MESSAGES),))
    rig.publish(*(to("phone", b"%d" % n) for n in range(4)))
    rig.run()
    rig.ack(channel, 2)
    assert rig.bodies(channel) == [b"0", b"1"]
    assert "2 of 2 messages per day used, 1 more would break it" in reasons(rig, "held")[0]
    rig.pass_time(DAY)
    assert rig.bodies(channel) == [b"0", b"1", b"2", b"3"]


def test_a_limit_survives_a_crash(rig: Rig) -> None:
    channel = phone(rig, limits=(daily(2, Measure.MESSAGES),))
    rig.publish(to("phone", b"a"), to("phone", b"b"))
    rig.run()
    rig.ack(channel, 2)
    rig.crash()
    channel = rig.resume(received=2, link="mno")
    rig.publish(to("phone", b"c"))
    rig.run()
    assert rig.bodies(channel) == []


def test_what_leaves_again_is_paid_for_durably_before_it_leaves(rig: Rig) -> None:
    wifi = phone(rig, "wifi", limits=(daily(1, Measure.MESSAGES, link="mno"),))
    mno = rig.join(link="mno")
    rig.publish(to("phone", b"a"))
    rig.run()
    assert rig.bodies(wifi) == [b"a"]
    rig.gateway.channel_lost(wifi, "broken", rig.now)
    rig.settle()
    assert rig.bodies(mno) == []
    rig.take(flush=True)
    rig.write()
    assert rig.bodies(mno) == [b"a"]
    rig.crash()
    again = rig.connect(link="mno")
    rig.publish(to("phone", b"b"))
    rig.run()
    assert rig.bodies(again) == []


def test_what_was_reserved_when_the_gateway_died_counts_as_spent(rig: Rig) -> None:
    channel = phone(rig, limits=(daily(1, Measure.MESSAGES),))
    rig.publish(to("phone", b"a"))
    rig.settle()
    rig.take()
    commit = rig.in_flight[0]
    rig.store.apply(commit)
    rig.crash()
    channel = rig.resume(link="mno")
    assert rig.bodies(channel) == []
    rig.pass_time(DAY)
    assert rig.bodies(channel) == [b"a"]


def test_a_link_that_has_reached_its_limit_is_closed_and_not_reopened(rig: Rig) -> None:
    channel = phone(rig, limits=(daily(1, Measure.MESSAGES, link="mno"),))
    rig.publish(to("phone", b"a"))
    rig.run()
    assert rig.disconnected == []
    rig.ack(channel, 1)
    (closed,) = rig.disconnected
    assert (closed.channel, closed.code) == (channel, CloseCode.LINK_CLOSED)
    assert closed.reason.startswith("mno has reached 1 messages per day over mno")
    midnight = (rig.now // DAY + 1) * DAY
    assert closed.retry_after_ms == -(-(midnight - rig.now) // 1000)
    rig.resume(received=1, link="mno")
    assert rig.disconnected[-1].code is CloseCode.LINK_CLOSED
    rig.connect("phone", link="wifi", incarnation=rig.welcome(channel).incarnation, epoch=1)
    assert len(rig.disconnected) == 2
    rig.pass_time(DAY)
    rig.resume(received=1, link="mno")
    assert [end.code for end in rig.disconnected[2:]] == [CloseCode.REPLACED]


def test_money_is_counted_and_logged(rig: Rig) -> None:
    channel = rig.connect(link="satellite")
    limits = (daily(2_500_000, Measure.MONEY),)
    rig.gateway.preferences.prefer(
        APP, "phone", Preferences(links=(SATELLITE,), limits=limits), rig.now
    )
    rig.publish(*(to("phone", b"%d" % n) for n in range(3)))
    rig.run()
    assert rig.bodies(channel) == [b"0", b"1"]
    told = [event for event in rig.events() if event["kind"] == "transmitted"]
    assert [event["cost"] for event in told] == [1.0, 1.0]


def test_limits_of_all_devices_together() -> None:
    rig = Rig()
    rig.identity = Identity(open_house=True, shared=(daily(3, Measure.MESSAGES),))
    rig.crash()
    first, second = rig.connect("phone"), rig.connect("tablet")
    rig.publish(*(to("phone", b"%d" % n) for n in range(2)))
    rig.run()
    rig.publish(*(to("tablet", b"%d" % n) for n in range(2)))
    rig.run()
    assert (rig.bodies(first), rig.bodies(second)) == ([b"0", b"1"], [b"0"])
    rig.crash()
    third = rig.connect("clock")
    rig.publish(to("clock"))
    rig.run()
    assert rig.bodies(third) == []


def test_a_held_lane_holds_up_no_other_and_keeps_its_order(rig: Rig) -> None:
    channel = phone(rig, limits=(daily(1, Measure.MESSAGES, queues=("news",)),))
    rig.publish(*(to("phone", b"news %d" % n, queue="news") for n in range(3)))
    rig.publish(*(to("phone", b"other %d" % n) for n in range(2)))
    rig.run()
    assert rig.bodies(channel) == [b"news 0", b"other 0", b"other 1"]
    prefer(rig, limits=(daily(2, Measure.MESSAGES, queues=("news",)),))
    assert rig.bodies(channel)[3:] == [b"news 1"]
    prefer(rig)
    assert rig.bodies(channel)[4:] == [b"news 2"]


def test_a_window_that_is_full_holds_lanes_that_are_allowed(rig: Rig) -> None:
    channel = phone(rig, queues=(QueueTerms("photos", links=("wifi",)),))
    rig.publish(*(to("phone", b"%d" % n, queue="photos") for n in range(70)))
    rig.run()
    assert rig.bodies(channel) == []
    prefer(rig)
    assert len(rig.bodies(channel)) == 64
    rig.ack(channel, 64)
    assert len(rig.bodies(channel)) == 70


# How a device says so.


def test_a_device_says_what_it_prefers(rig: Rig) -> None:
    channel = rig.connect(link="mno")
    body = (
        b'{"links":[{"label":"wifi","tariff":{}}],'
        b'"limits":[{"amount":5,"measure":"bytes","period":"day"}]}'
    )
    said = MessageFrame(0, 1, None, Headers(operation=Operation.PREFERENCES), body)
    rig.hear(channel, said)
    assert rig.acks(channel) == [1]
    preferences = rig.gateway.registry.named(APP, "phone").record.preferences
    assert preferences is not None
    assert [link.label for link in preferences.links] == ["wifi"]
    (told,) = [event for event in rig.events() if event["kind"] == "preferences_changed"]
    assert '"amount":5' in told["terms"]
    rig.publish(to("phone", b"123456"))
    rig.run()
    assert rig.bodies(channel) == []
    rig.crash()
    again = rig.gateway.registry.named(APP, "phone").record.preferences
    assert again == preferences


@pytest.mark.parametrize(
    "body, detail",
    [
        (b"{", "preferences must be a JSON object: "),
        (b"[]", "not preferences: Expected `object`, got `array`"),
        (b'{"likes":1}', "not preferences: Object contains unknown field `likes`"),
        (b'{"zone":"Mars/Olympus"}', "Mars/Olympus"),
        (b'{"limits":[{"amount":-1,"measure":"bytes","period":"day"}]}', "cannot be negative"),
    ],
)
def test_impossible_preferences_are_refused(rig: Rig, body: bytes, detail: str) -> None:
    channel = rig.connect()
    rig.hear(channel, MessageFrame(0, 1, None, Headers(operation=Operation.PREFERENCES), body))
    (answer,) = rig.messages(channel)
    assert detail in answer.body.decode()
    assert rig.gateway.registry.named(APP, "phone").record.preferences is None


# What is measured.


def test_latency_and_contention_are_learned_from_acknowledgements(rig: Rig) -> None:
    channel = phone(rig)
    for n in range(3):
        rig.publish(to("phone", b"x" * 1000))
        rig.run()
        rig.pass_time(SECOND * 2)
        rig.ack(channel, n + 1)
    told = [event for event in rig.events() if event["kind"] == "measured"]
    assert len(told) == 1, "not for every message"
    assert (told[0]["link"], told[0]["rtt"]) == ("mno", 2 * SECOND)
    line = rig.gateway.deliveries.named(APP, "phone").line
    assert line.gauge is not None
    assert line.gauge.estimate.latency == 2 * SECOND
    rig.pass_time(MINUTE)
    rig.publish(to("phone"))
    rig.run()
    rig.ack(channel, 4)
    assert len([event for event in rig.events() if event["kind"] == "measured"]) == 2


def test_a_link_that_proves_slow_is_avoided(rig: Rig) -> None:
    wifi = phone(rig, "wifi", queues=(QueueTerms("", weights=Weights(0, 0, 1, 0)),))
    mno = rig.join(link="mno")
    rig.publish(to("phone", b"a"))
    rig.run()
    assert rig.bodies(wifi) == [b"a"]
    rig.pass_time(9 * SECOND // 10)
    rig.ack(wifi, 1)
    rig.publish(to("phone", b"b"))
    rig.run()
    assert rig.bodies(mno) == [b"b"]


# How many, and together.


def test_a_cap_lets_the_best_through_first(rig: Rig) -> None:
    channel = phone(rig, caps=(Cap(2, Period.DAY, ("ads",)),))
    for n, rank in enumerate((1.0, 2.0, 3.0, 9.0, 5.0)):
        rig.publish(to("phone", b"%d" % n, queue="ads", rank=rank))
        rig.run()
    rig.publish(to("phone", b"other"))
    rig.run()
    assert rig.bodies(channel) == [b"0", b"1", b"other"]
    assert "at most 2 per day: its turn comes" in reasons(rig, "held")[0]
    rig.crash()
    channel = rig.resume(link="mno")
    assert rig.bodies(channel) == [b"0", b"1", b"other"], "what is under way comes again"
    rig.ack(channel, 3)
    rig.pass_time(DAY)
    assert rig.bodies(channel)[3:] == [b"3", b"4"]
    rig.pass_time(DAY)
    assert rig.bodies(channel)[5:] == [b"2"]


def test_a_raised_cap_keeps_its_count(rig: Rig) -> None:
    channel = phone(rig, caps=(Cap(1, Period.DAY),))
    rig.publish(to("phone", b"a"), to("phone", b"b"), to("phone", b"c"))
    rig.run()
    assert rig.bodies(channel) == [b"a"]
    prefer(rig, caps=(Cap(2, Period.DAY),))
    assert rig.bodies(channel) == [b"a", b"b"]


def test_a_digest_comes_together_at_its_time(rig: Rig) -> None:
    midnight = START - START % DAY
    noon = int((START - midnight) // MINUTE) + 30
    channel = phone(rig, digests=(DigestTimes((noon,), queues=("news",)),))
    rig.publish(to("phone", b"a", queue="news"))
    rig.run()
    rig.pass_time(10 * MINUTE)
    rig.publish(to("phone", b"b", queue="news"), to("phone", b"now"))
    rig.run()
    assert rig.bodies(channel) == [b"now"]
    rig.pass_time(21 * MINUTE)
    assert rig.bodies(channel) == [b"now", b"a", b"b"]
    with pytest.raises(InvalidRequest, match="no moment satisfies all constraints"):
        rig.publish(to("phone", queue="news", deliver_before=rig.now + MINUTE))


def test_caps_and_digests_are_checked() -> None:
    with pytest.raises(InvalidRequest, match="a cap must let at least one message through"):
        Cap(0, Period.DAY)
    with pytest.raises(InvalidRequest, match="a digest must have 1 to 24 times of day"):
        DigestTimes(())


class TestMeasuring:
    """What is learned of a link from the traffic that flows anyway."""

    def test_what_was_learned_of_a_network_is_known_when_the_device_comes_back(self) -> None:
        rig = Rig()
        channel = rig.connect(link="wifi", network="home")
        rig.gateway.preferences.prefer(APP, "phone", Preferences(links=(WIFI,)), rig.now)
        rig.publish(to("phone"))
        rig.run()
        rig.now += 7 * SECOND
        rig.ack(channel, 1)
        rig.lose(channel)

        def latency(network: str) -> int | None:
            back = rig.resume(received=1, link="wifi", network=network)
            device_preferences = preferences_of(rig.gateway.deliveries.named(APP, "phone"))
            assert device_preferences is not None
            found = device_preferences.link_of(device_preferences.session.line).latency
            rig.lose(back)
            return found

        assert latency("home") == 7 * SECOND
        assert latency("cafe") == WIFI.latency
