"""Ranked topics across a crash of the gateway: the same decisions, and nothing said twice."""

from __future__ import annotations

import msgspec
import pytest

from lasthop.clock import HOUR, SECOND
from lasthop.core.lifecycle import State
from lasthop.core.ranked.records import HOT
from lasthop.core.ranked.subscription import RankedSubscription
from lasthop.decision.policies import POLICIES
from lasthop.decision.policies.memory import memory_of
from lasthop.decision.volume.policy_choice import EARLIER_DEFAULT, SNAPSHOT_AFTER, PolicyChoice
from lasthop.store.tables.ranked import RankedInMemory
from lasthop.wire.hop.feeds import Look, encode_look
from lasthop.wire.hop.frames import Dropped, Headers, MessageFrame, Operation
from tests.core.ranked.phone import Phone
from tests.core.rig import APP, to
from tests.store.peek import rows_of


def asked(phone: Phone, operation: Operation, body: bytes) -> MessageFrame:
    """The next frame that the device sends; what comes of it is not taken in."""
    phone.sent += 1
    return MessageFrame(phone.sent - 1, 77, "news", Headers(operation=operation), body)


def stored(phone: Phone) -> set[int]:
    """The messages of which the store knows what a feed thinks."""
    return {row.message for row in rows_of(phone.rig.store, RankedInMemory).kept.kept.values()}


def restart(phone: Phone) -> None:
    phone.rig.crash()
    phone.rig.run()
    phone.resume()


def subscription(phone: Phone) -> RankedSubscription:
    gateway = phone.rig.gateway
    session = gateway.deliveries.named(APP, "phone")
    found = gateway.ranked.subscription(session, "news")
    assert found is not None
    return found


@pytest.fixture
def phone() -> Phone:
    phone = Phone()
    phone.connect()
    return phone


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_knows_after_a_crash_what_it_knew(phone: Phone, policy: str) -> None:
    phone.subscribe(policy=policy, max=3, threshold=1)
    for n in range(2 * SNAPSHOT_AFTER + 5):
        phone.publish(n % 7, deliver_before=phone.rig.now + HOUR)
        if n % 9 == 0:
            phone.look(2)
            phone.rig.now += 7 * SECOND
    before = memory_of(subscription(phone).policy._policy)
    held = sorted(subscription(phone).feed.entries())
    there = sorted(subscription(phone).feed.on_device())
    restart(phone)
    assert memory_of(subscription(phone).policy._policy) == before
    assert sorted(subscription(phone).feed.entries()) == held
    assert sorted(subscription(phone).feed.on_device()) == there == sorted(phone.kept)


def test_what_waits_is_there_after_a_crash(phone: Phone) -> None:
    phone.subscribe(policy="buffer", prefetch_limit=1, threshold=2)
    kept, held, low = phone.publish(3, 5, 1)
    restart(phone)
    assert list(phone.kept) == [kept]
    assert phone.look() == [held, kept]
    assert phone.rig.state(low) is State.PENDING


def test_a_rank_that_was_confirmed_is_not_forgotten(phone: Phone) -> None:
    phone.subscribe(policy="on-demand", threshold=2)
    a, b = phone.publish(3, 4)
    message = phone.rig.store.messages([a])[a]
    phone.rig.gateway.ranked.change_rank(APP, message, 9, [], phone.rig.now)
    phone.rig.run()
    restart(phone)
    assert phone.look() == [a, b]


def test_an_answer_that_was_decided_is_given_after_a_crash(phone: Phone) -> None:
    phone.subscribe(policy="on-demand")
    a, b = phone.publish(3, 4)
    look = asked(phone, Operation.LOOK, encode_look(Look(5)))
    phone.rig.hear(phone.channel, look, run=False)
    phone.rig.run_commits(1)
    restart(phone)
    phone.hear()
    assert phone.shown == [b, a]
    assert phone.rig.state(a) is State.DELIVERED


def test_quiet_hours_go_on_where_they_were(phone: Phone) -> None:
    phone.subscribe(mode="on-line", times=["23:00"], policy="on-demand")
    (a,) = phone.publish(1)
    assert not phone.came
    phone.rig.crash()
    phone.rig.pass_time(25 * HOUR)
    phone.resume()
    assert phone.came == [a]


def test_another_policy_takes_over_and_the_log_says_so(phone: Phone) -> None:
    phone.subscribe()
    phone.publish(1)
    book = phone.rig.identity.policies
    book.choice = PolicyChoice("buffer", version="7", prefetch_limit=3)  # type: ignore[attr-defined]
    assert phone.rig.gateway.ranked.policies_changed(phone.rig.now) == 1
    assert phone.rig.gateway.ranked.policies_changed(phone.rig.now) == 0
    phone.rig.run()
    (event,) = [e for e in phone.rig.events() if e["kind"] == "policy_changed"]
    assert (event["policy"], event["topic"]) == ("buffer@7", "news")
    restart(phone)
    assert subscription(phone).choice.label == "buffer@7"


def test_a_new_subscription_without_a_choice_gets_the_default(phone: Phone) -> None:
    phone.rig.identity.policies.choice = None  # type: ignore[attr-defined]
    phone.subscribe()
    assert subscription(phone).choice == PolicyChoice("predictive")
    restart(phone)
    assert subscription(phone).choice == PolicyChoice("predictive")


def test_a_subscription_keeps_the_default_of_the_version_that_it_was_made_with(
    phone: Phone,
) -> None:
    """A stored feed of an earlier version names neither a policy nor a default."""
    phone.rig.identity.policies.choice = None  # type: ignore[attr-defined]
    phone.subscribe(max=3)
    subscription(phone).choice = PolicyChoice(EARLIER_DEFAULT)
    subscription(phone).default = EARLIER_DEFAULT
    subscription(phone).note()
    phone.look(2)
    kept = rows_of(phone.rig.store, RankedInMemory).kept.feeds
    (hot,) = [row.record for (_, _, part), row in kept.items() if part == HOT]
    assert b"default" not in hot
    assert b"unified" not in hot
    restart(phone)
    assert subscription(phone).choice.policy == "unified"
    phone.subscribe(max=4)
    assert subscription(phone).choice.policy == "unified", "other terms, but the same subscription"
    other = Phone(phone.rig)
    other.connect(name="other")
    other.subscribe(max=4)
    made = phone.rig.gateway.ranked.subscription(
        phone.rig.gateway.deliveries.named(APP, "other"), "news"
    )
    assert made is not None
    assert made.choice.policy == "predictive"


def test_a_policy_begins_with_what_is_known_elsewhere(phone: Phone) -> None:
    phone.subscribe()
    for _ in range(4):
        phone.look(6)
    memory = memory_of(subscription(phone).policy._policy)
    book = phone.rig.identity.policies
    book.choice = PolicyChoice("unified", version="2", memory=memory)  # type: ignore[attr-defined]
    other = Phone()
    other.rig.identity.policies.choice = book.choice  # type: ignore[attr-defined]
    other.connect()
    other.subscribe()
    assert memory_of(subscription(other).policy._policy) == memory


def test_what_could_not_be_said_yet_is_said_after_a_crash(phone: Phone) -> None:
    """It is on its way when its rank falls and rises again: it is sent anew when it has come."""
    phone.subscribe(threshold=2)
    rig = phone.rig
    (a,) = rig.publish(to("topic:news", rank=5.0))
    rig.run()
    for rank in (1.0, 6.0):
        rig.gateway.ranked.change_rank(APP, rig.store.messages([a])[a], rank, [], rig.now)
        rig.run()
    assert subscription(phone).lane, "the second time waits for the first to arrive"
    restart(phone)
    assert not subscription(phone).lane
    assert phone.kept == {a: 6.0}
    assert phone.look() == [a]
    assert rig.state(a) is State.DELIVERED


def test_what_a_device_did_not_do_stays_undone_after_a_crash(phone: Phone) -> None:
    """It was to show a message, and says that it did not; nobody has had the message."""
    phone.subscribe(policy="buffer", prefetch_limit=1)
    (a,) = phone.publish(5)
    rig = phone.rig
    rig.hear(phone.channel, asked(phone, Operation.LOOK, encode_look(Look(1))))
    (shows,) = rig.messages(phone.channel)[phone.seen :]
    assert shows.seq is not None
    rig.hear(phone.channel, Dropped(((shows.seq, shows.seq + 1),)))
    rig.run()
    assert shows.key in stored(phone), "the store knows"
    rig.crash()
    rig.run()
    phone.received = shows.seq + 1
    phone.resume()
    assert rig.state(a) is not State.DELIVERED
    assert shows.key not in stored(phone), "it is over: nothing is left of it"


def test_an_instruction_is_one_after_new_terms_and_a_crash(phone: Phone) -> None:
    phone.subscribe(policy="on-demand")
    (a,) = phone.publish(5)
    phone.rig.hear(phone.channel, asked(phone, Operation.LOOK, encode_look(Look(1))))
    terms = msgspec.json.encode({"policy": "buffer", "prefetch_limit": 3})
    phone.rig.hear(phone.channel, asked(phone, Operation.SUBSCRIBE, terms))
    phone.rig.run()
    phone.rig.crash()
    phone.rig.run()
    phone.resume()
    assert phone.shown == [a]
    assert phone.rig.state(a) is State.DELIVERED
    assert not phone.kept
