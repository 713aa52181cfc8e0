"""Ranked topics in the gateway: what a device gets, and what the store and the log say of it."""

from __future__ import annotations

import pytest

from lasthop.clock import SECOND
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.decision.volume.rules import ContextRule
from lasthop.message import Reliability
from lasthop.store.tables.ranked import RankedInMemory
from lasthop.wire.hop.feeds import (
    FeedTerms,
    Forget,
    HeldItem,
    Look,
    OfflineReading,
    Report,
    Why,
    encode_look,
    encode_report,
)
from lasthop.wire.hop.frames import Dropped, Headers, MessageFrame, Operation
from tests.core.ranked.phone import Phone
from tests.core.rig import APP, to
from tests.store.peek import rows_of


@pytest.fixture
def phone() -> Phone:
    phone = Phone()
    phone.connect()
    return phone


def test_a_device_is_told_what_it_needs_when_it_is_on_its_own(phone: Phone) -> None:
    phone.subscribe(max=8, threshold=3)
    assert phone.instructions == [FeedTerms(8)]


def test_a_read_shows_the_best_and_fetches_what_is_not_there(phone: Phone) -> None:
    phone.subscribe(max=2, policy="on-demand", threshold=2)
    a, b, c, low = phone.publish(3, 5, 4, 1)
    assert not phone.kept
    assert phone.look() == [b, c]
    assert phone.look() == [a]
    assert phone.look() == []
    assert [phone.rig.state(key) for key in (a, b, c, low)] == [
        State.DELIVERED,
        State.DELIVERED,
        State.DELIVERED,
        State.PENDING,
    ]


def test_what_is_sent_ahead_is_kept_until_it_is_read(phone: Phone) -> None:
    phone.subscribe(policy="buffer", prefetch_limit=2)
    a, b, c = phone.publish(1, 2, 3)
    assert list(phone.kept) == [a, b]
    assert phone.rig.state(a) is State.RECEIVED
    assert phone.look(1) == [c]
    assert phone.look(9) == [b, a]
    assert phone.rig.states()[State.DELIVERED] == phone.rig.states().total()


def test_an_on_line_topic_comes_as_a_plain_one_does(phone: Phone) -> None:
    phone.subscribe(mode="on-line", threshold=2)
    a, _, c = phone.publish(3, 1, 2)
    assert phone.came == [a, c]
    assert phone.rig.state(a) is State.DELIVERED


def test_a_catch_up_shows_the_best_max_and_keeps_the_others(phone: Phone) -> None:
    phone.subscribe(mode="on-line", max=2, policy="on-demand")
    phone.lose()
    a, b, c = phone.publish(1, 3, 2)
    phone.resume()
    assert phone.came == [b, c]
    assert phone.rig.state(a) is State.PENDING
    assert phone.look() == [a]


def test_what_ranks_high_enough_interrupts(phone: Phone) -> None:
    phone.subscribe(interrupt=9)
    quiet, loud = phone.publish(1, 9)
    assert phone.came == [loud]
    assert list(phone.kept) == [quiet]


def test_a_kept_message_whose_rank_rises_far_enough_is_shown(phone: Phone) -> None:
    phone.subscribe(interrupt=9)
    (key,) = phone.publish(1)
    change_rank(phone, key, 9.5)
    assert phone.shown == [key]
    assert phone.rig.state(key) is State.DELIVERED


def change_rank(phone: Phone, key: int, rank: float) -> int:
    rig = phone.rig
    rig.run()
    message = rig.store.messages([key])[key]
    had = [row.device for row in rig.store.deliveries(key)]
    count = rig.gateway.ranked.change_rank(APP, message, rank, had, rig.now)
    rig.run()
    phone.hear()
    return count


def test_a_fall_of_rank_retracts_what_is_kept(phone: Phone) -> None:
    phone.subscribe(threshold=2)
    a, b = phone.publish(5, 4)
    assert set(phone.kept) == {a, b}
    assert change_rank(phone, a, 1) == 1
    assert set(phone.kept) == {b}
    assert phone.rig.state(a) is State.PENDING
    assert phone.look() == [b]
    change_rank(phone, a, 3)
    assert phone.look() == [a]
    assert "retracted" in phone.rig.story(a)


def test_a_fall_of_rank_is_told_on_contact(phone: Phone) -> None:
    phone.subscribe(threshold=2)
    a, b = phone.publish(5, 4)
    phone.lose()
    message = phone.rig.store.messages([a])[a]
    phone.rig.gateway.ranked.change_rank(APP, message, 1, [], phone.rig.now)
    phone.rig.run()
    assert set(phone.kept) == {a, b}
    phone.resume()
    assert set(phone.kept) == {b}


def test_what_was_seen_and_is_worth_nothing_any_more_is_retracted_as_well(phone: Phone) -> None:
    phone.subscribe(threshold=2)
    (a,) = phone.publish(5)
    assert phone.look() == [a]
    assert change_rank(phone, a, 0) == 0
    assert phone.instructions[-1] == Forget(Why.RANK, (a,))


def test_a_new_rank_moves_a_kept_message(phone: Phone) -> None:
    phone.subscribe()
    _a, b = phone.publish(5, 4)
    change_rank(phone, b, 6)
    assert phone.kept[b] == 6
    assert phone.look(1) == [b]


def test_a_full_device_gives_its_worst_back(phone: Phone) -> None:
    phone.lose()
    phone.resume(storage=2)
    phone.subscribe(policy="on-line")
    a, b, c = phone.publish(1, 2, 3)
    assert set(phone.kept) == {b, c}
    assert phone.rig.state(a) is State.PENDING
    assert phone.look() == [c, b, a]


def test_a_quota_evicts_by_rank_and_says_so(phone: Phone) -> None:
    phone.subscribe(policy="on-demand", retention=2)
    a, b, c = phone.publish(3, 1, 2)
    assert phone.rig.state(b) is State.SUPPRESSED
    assert phone.look() == [a, c]
    row = next(e for e in phone.rig.events() if e["kind"] == "suppressed")
    assert row["reason"] == "the quota is full, and it is outranked"
    assert row["topic"] == "news"


def test_the_gateways_own_quota_holds_for_everybody() -> None:
    phone = Phone(limits=Limits(retained=2))
    phone.connect()
    phone.subscribe(policy="on-demand", retention=50)
    phone.publish(3, 1, 2, 5)
    assert phone.rig.states()[State.SUPPRESSED] == 2


def test_what_waits_expires(phone: Phone) -> None:
    phone.subscribe(policy="on-demand")
    a, _b = phone.publish(3, 1, deliver_before=phone.rig.now + SECOND)
    phone.rig.pass_time(2 * SECOND)
    assert phone.rig.state(a) is State.EXPIRED
    assert phone.look() == []


def test_what_expires_on_the_device_waits_for_its_word(phone: Phone) -> None:
    phone.subscribe()
    (a,) = phone.publish(3, deliver_before=phone.rig.now + SECOND)
    assert a in phone.kept
    phone.rig.pass_time(2 * SECOND)
    assert phone.rig.state(a) is State.RECEIVED
    del phone.kept[a]
    phone.report(Report(lapsed=(a,)))
    assert phone.rig.state(a) is State.EXPIRED


def test_a_read_without_contact_is_told_of_later(phone: Phone) -> None:
    phone.subscribe(policy="buffer", prefetch_limit=2)
    a, b = phone.publish(1, 2)
    phone.lose()
    (c,) = phone.publish(3)
    del phone.kept[b]
    sent = phone.sent
    phone.resume(assigned=sent + 1)
    assert c not in phone.kept, "nothing is decided before the report is here"
    phone.report(Report(reads=(OfflineReading(phone.rig.now // 1000, 1, (b,)),)))
    assert c in phone.kept
    assert phone.rig.state(b) is State.DELIVERED
    assert phone.look() == [c, a]


def test_the_number_of_what_was_read_before_it_left_is_closed(phone: Phone) -> None:
    phone.subscribe(policy="on-demand")
    (key,) = phone.publish(1)
    rig, channel, number = phone.rig, phone.channel, phone.received
    asked = Headers(operation=Operation.LOOK)
    look = MessageFrame(phone.sent, 2000, "news", asked, encode_look(Look(None, 0)))
    rig.hear(channel, look, run=False)
    rig.settle()
    assert rig.gateway.deliveries.named(APP, "phone").lane.outbound.assigned > number
    # It has it from an earlier contact, and its report of an earlier read has only come now.
    read = encode_report(Report(reads=(OfflineReading(rig.now // 1000, None, (key,)),)))
    told = Headers(operation=Operation.REPORT)
    rig.hear(channel, MessageFrame(phone.sent + 1, 2001, "news", told, read))
    assert rig.state(key) is State.DELIVERED
    assert number in rig.skips(channel)


def test_a_device_without_its_memory_gets_everything_again(phone: Phone) -> None:
    phone.subscribe()
    a, b = phone.publish(1, 2)
    phone.lose()
    phone.kept.clear()
    phone.connect()
    assert set(phone.kept) == {a, b}
    assert phone.look() == [b, a]


def test_an_inventory_settles_who_has_what(phone: Phone) -> None:
    phone.subscribe()
    a, b = phone.publish(1, 2)
    phone.lose()
    del phone.kept[a]
    phone.kept[7] = 9.0
    phone.connect(incarnation=bytes(8), epoch=99)
    assert set(phone.kept) == {b, 7}
    phone.report(Report(held=(("news", (HeldItem(b, 2.0, None), HeldItem(7, 9.0, None))),)))
    assert set(phone.kept) == {a, b, 7}
    assert phone.look() == [7, b, a]


def test_an_answer_that_nobody_waited_for_is_unread_again(phone: Phone) -> None:
    phone.subscribe()
    a, b = phone.publish(1, 2)
    # As a device does whose reader had given up: the answer is not followed, and that is told.
    look = MessageFrame(
        phone.sent, 77, "news", Headers(operation=Operation.LOOK), encode_look(Look(1))
    )
    phone.sent += 1
    phone.rig.hear(phone.channel, look)
    answer = phone.rig.messages(phone.channel)[-1]
    assert answer.seq is not None
    phone.seen += 1
    phone.received = answer.seq + 1
    phone.rig.hear(phone.channel, Dropped(((answer.seq, answer.seq + 1),)))
    phone.rig.ack(phone.channel, phone.received)
    assert phone.rig.state(b) is State.RECEIVED
    phone.report(Report(unread=(b,)))
    assert phone.look() == [b, a]


def test_new_terms_hold_for_what_is_there(phone: Phone) -> None:
    phone.subscribe()
    a, b = phone.publish(1, 2)
    assert set(phone.kept) == {a, b}
    phone.subscribe(threshold=2, max=1)
    assert set(phone.kept) == {b}
    assert phone.look() == [b]
    phone.subscribe()
    assert phone.look() == [a]


def test_an_end_of_the_subscription_forgets_everything(phone: Phone) -> None:
    phone.subscribe(policy="buffer", prefetch_limit=1)
    a, b = phone.publish(1, 2)
    phone.say(Operation.UNSUBSCRIBE, b"")
    assert not phone.kept
    assert phone.rig.state(a) is State.TIMED_OUT, "the user may have seen it"
    assert phone.rig.state(b) is State.SUPPRESSED
    assert not rows_of(phone.rig.store, RankedInMemory).kept.feeds
    assert not rows_of(phone.rig.store, RankedInMemory).kept.kept
    (c,) = phone.publish(1) or (0,)
    assert not phone.rig.store.deliveries(c)


def test_bad_terms_are_named_and_change_nothing(phone: Phone) -> None:
    for body, detail in [
        (b'{"max": 0}', ">= 1 - at `$.max`"),
        (b'{"mode": "sometimes"}', "at `$.mode`"),
        (b'{"policy": "oracle"}', "no such policy"),
        (b'{"quiet": {"start": "7", "end": "08:00"}}', "at `$.quiet.start`"),
        (b'{"mode": "on-demand", "times": ["08:00"]}', "quiet and times need an on-line topic"),
        (b'{"zone": "Middle/Earth"}', "no such time zone"),
        (b"[]", "terms must be a JSON object"),
    ]:
        phone.say(Operation.SUBSCRIBE, body)
        answer = phone.rig.messages(phone.channel)[-1]
        assert detail in answer.body.decode()
    assert phone.rig.gateway.registry.named(APP, "phone").record.subscriptions == []


def test_a_look_needs_a_ranked_subscription(phone: Phone) -> None:
    phone.say(Operation.LOOK, b"")
    assert "no ranked subscription" in phone.rig.messages(phone.channel)[-1].body.decode()


def test_what_cannot_be_read_is_answered(phone: Phone) -> None:
    phone.subscribe()
    for operation in (Operation.LOOK, Operation.REPORT):
        phone.say(operation, b"\x01")
        assert b"malformed" in phone.rig.messages(phone.channel)[-1].body or (
            b"invalid" in phone.rig.messages(phone.channel)[-1].body
        )
    assert not phone.rig.disconnected


def test_a_device_that_does_not_understand_gets_nothing_of_it() -> None:
    phone = Phone()
    phone.connect(features=0)
    phone.subscribe()
    phone.publish(5)
    assert not phone.kept
    assert not phone.came


def test_plain_subscriptions_are_as_they_were(phone: Phone) -> None:
    phone.say(Operation.SUBSCRIBE, b"")
    keys = phone.publish(5, 1)
    assert phone.came == keys
    assert not rows_of(phone.rig.store, RankedInMemory).kept.kept


def test_a_message_is_held_back_until_its_time(phone: Phone) -> None:
    phone.subscribe()
    later = phone.rig.now + 5 * SECOND
    (a,) = phone.rig.publish(to("topic:news", rank=2.0, deliver_after=later))
    phone.hear()
    assert not phone.kept
    phone.rig.crash()
    phone.rig.pass_time(6 * SECOND)
    phone.resume()
    assert list(phone.kept) == [a]


def test_cancelling_works_for_what_is_held_and_comes_too_late_for_what_is_kept(
    phone: Phone,
) -> None:
    phone.subscribe(policy="buffer", prefetch_limit=1)
    kept, held = phone.publish(1, 2)
    gone = phone.rig.gateway.cancel(APP, held, phone.rig.now)
    late = phone.rig.gateway.cancel(APP, kept, phone.rig.now)
    assert gone is not None
    assert gone.taken_back == 1
    assert late is not None
    assert late.too_late == 1
    phone.hear()
    assert phone.look() == [kept]


def test_a_rank_that_rises_and_falls_while_it_is_on_its_way(phone: Phone) -> None:
    phone.subscribe(threshold=2)
    (a,) = phone.rig.publish(to("topic:news", rank=5.0))
    rig = phone.rig
    rig.run()
    frames = rig.messages(phone.channel)
    assert frames[-1].key == a
    # Not acknowledged yet: it falls, rises, and is asked for.
    for rank in (1.0, 6.0):
        message = rig.store.messages([a])[a]
        rig.gateway.ranked.change_rank(APP, message, rank, [], rig.now)
        rig.run()
    phone.hear()
    assert list(phone.kept) == [a]
    assert phone.look() == [a]
    assert rig.state(a) is State.DELIVERED


def test_best_effort_messages_of_a_ranked_topic_are_kept_like_others(phone: Phone) -> None:
    phone.subscribe()
    (a,) = phone.publish(1, reliability=Reliability.BEST_EFFORT)
    assert phone.look() == [a]


def test_an_unknown_kind_of_frame_in_a_report_does_no_harm(phone: Phone) -> None:
    phone.subscribe()
    phone.report(Report(had=(1, 2), lapsed=(3,), unread=(4,)))
    frame = MessageFrame(phone.sent, 5, None, Headers(operation=Operation.REPORT), b"")
    phone.sent += 1
    phone.rig.hear(phone.channel, frame)
    assert not phone.rig.disconnected


def test_quiet_hours_follow_the_devices_clock(phone: Phone) -> None:
    # The rig's clock shows 09:46 in UTC, and 01:46 in Los Angeles.
    phone.subscribe(mode="on-line", quiet={"start": "22:00", "end": "07:00"}, policy="on-demand")
    (a,) = phone.publish(1)
    assert phone.came == [a]
    phone.rig.gateway.admin.amend(APP, "phone", phone.rig.now, zone="America/Los_Angeles")
    (b,) = phone.publish(2)
    assert phone.came == [a]
    phone.rig.gateway.admin.amend(APP, "phone", phone.rig.now, zone="UTC")
    phone.hear()
    assert phone.came == [a, b]


def test_a_context_of_any_shape_does_no_harm(phone: Phone) -> None:
    rules = [ContextRule(topic="traffic.{city}")]
    phone.rig.gateway.topics.set_rules(APP, "phone", rules, phone.rig.now)
    deep = b"[" * 5000 + b"]" * 5000
    for value in (b'"oslo"', deep, b"null", b"17", b"true", b"{}", b'"a b"'):
        phone.say(Operation.CONTEXT, b'{"city": %s}' % value, None)
    assert phone.rig.gateway.registry.named(APP, "phone").record.subscriptions == []
    phone.say(Operation.CONTEXT, b'{"city": 17}', None)
    assert phone.rig.gateway.registry.named(APP, "phone").record.subscriptions == ["traffic.17"]
    assert not phone.rig.disconnected


def test_a_topic_goes_quiet_in_a_context(phone: Phone) -> None:
    phone.subscribe(mode="on-line", quiet_when={"activity": ["meeting"]}, policy="on-demand")
    phone.say(Operation.CONTEXT, b'{"activity": "meeting"}', None)
    (a,) = phone.publish(1)
    assert not phone.came
    phone.say(Operation.CONTEXT, b'{"activity": "lunch"}', None)
    assert phone.came == [a]
