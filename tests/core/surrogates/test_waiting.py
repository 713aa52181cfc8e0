"""What waits for a surrogate: durably, in order, within limits, and no longer than it is wanted."""

from __future__ import annotations

import pytest

from lasthop.clock import HOUR, MILLISECOND, SECOND
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.surrogates.waiting import MOST_GIVEN, Failing
from lasthop.errors import QuotaExceeded
from lasthop.store.tables.surrogates import SurrogatesInMemory
from lasthop.surrogate.mail import Way
from tests.core.rig import APP, START, Rig, publication, to
from tests.core.surrogates.office import Office, changed, remembering
from tests.store.peek import rows_of


def test_a_message_waits_for_the_surrogate_before_it_leaves() -> None:
    office = Office()
    phone = office.connect()
    (key,) = office.publish(to("phone", b"hello"))
    office.run()
    assert office.messages(phone) == []
    assert office.state(key) is State.PENDING
    (mail,) = office.mails
    assert (mail.device, mail.body, mail.way, mail.key) == (
        "phone",
        b"hello",
        Way.TO_DEVICE,
        key,
    )
    assert mail.online
    office.say()
    assert office.bodies(phone) == [b"hello"]


def test_the_surrogate_is_asked_at_once_and_not_after_the_commit() -> None:
    office = Office()
    office.connect()
    office.publish(to("phone"))
    office.settle()
    assert len(office.mails) == 1


def test_an_app_without_a_surrogate_asks_nobody() -> None:
    rig = Rig()
    rig.connect()
    rig.publish(to("phone"))
    rig.run()
    assert rig.gateway.surrogates not in rig.gateway.features
    assert rig.consults == []


def test_what_waits_is_asked_again_after_a_crash() -> None:
    office = Office()
    office.connect()
    keys = office.publish(to("phone", b"1"), to("phone", b"2"), to("phone", b"3"))
    office.run()
    office.say(remembering(a=b"\x01"))
    office.say(remembering(a=b"\x02"), run=False)  # Not durable when the gateway dies.
    office.crash()
    office.run()
    assert [(mail.key, mail.attempt) for mail in office.mails] == [(keys[1], 1), (keys[2], 1)]
    assert office.memory == {"a": b"\x01"}


def test_a_verdict_that_was_not_durable_is_asked_for_again() -> None:
    office = Office()
    office.connect()
    (key,) = office.publish(to("phone"))
    office.run()
    office.say(changed(b"other"), run=False)
    office.crash()
    phone = office.connect()
    assert [mail.key for mail in office.mails] == [key]
    office.say()
    assert office.bodies(phone) == [b"hello"]


def test_what_a_device_sends_is_acknowledged_and_waits() -> None:
    office = Office()
    office.connect("tablet")
    phone = office.connect("phone")
    office.hear(phone, publication(0, b"up"))
    assert office.acks(phone) == [1]
    (mail,) = office.mails
    assert (mail.way, mail.device, mail.body) == (Way.FROM_DEVICE, "phone", b"up")
    assert mail.target == "device:tablet"
    office.crash()
    office.run()
    (again,) = office.mails
    assert (again.way, again.body, again.number) == (Way.FROM_DEVICE, b"up", mail.number)


def test_a_delayed_message_is_asked_about_when_it_is_due() -> None:
    office = Office()
    office.connect()
    office.publish(to("phone", deliver_after=START + HOUR))
    office.run()
    assert office.mails == []
    office.crash()
    office.connect()
    assert office.mails == []
    office.pass_time(HOUR)
    assert len(office.mails) == 1


def test_a_message_that_is_cancelled_in_time_is_never_seen_by_the_surrogate() -> None:
    office = Office()
    office.connect()
    (key,) = office.publish(to("phone", deliver_after=START + HOUR))
    office.run()
    office.gateway.cancel(APP, key, office.now)
    office.pass_time(2 * HOUR)
    assert office.mails == []
    assert office.post.waiting == 0
    assert rows_of(office.store, SurrogatesInMemory).kept.consults == {}


def test_deadlines_run_while_a_message_waits() -> None:
    office = Office()
    phone = office.connect()
    (key,) = office.publish(to("phone", deliver_before=START + SECOND))
    office.run()
    office.pass_time(2 * SECOND)
    assert office.state(key) is State.EXPIRED
    assert office.say(remembering(seen=b"\x01")) is None  # Its word comes too late for the message,
    assert office.messages(phone) == []
    assert office.stored_state == {"seen": b"\x01"}  # but not for what it remembers.
    assert office.state(key) is State.EXPIRED


def test_what_ended_before_it_was_given_is_not_given() -> None:
    office = Office()
    office.connect()
    first, second = office.publish(to("phone", b"1"), to("phone", b"2"))
    office.run()
    office.fail()
    office.gateway.cancel(APP, first, office.now)
    office.pass_time(SECOND)
    assert [mail.key for mail in office.mails] == [second]


def test_higher_priority_goes_first_and_the_rest_in_order() -> None:
    office = Office()
    office.connect()
    keys = office.publish(*(to("phone", priority=p) for p in (4, 4, 7, 1, 7)))
    office.run()
    order = [mail.key for mail in office.mails]
    assert order == [keys[2], keys[4], keys[0], keys[1], keys[3]]


def test_not_more_than_a_batch_is_given_at_once() -> None:
    office = Office()
    office.connect()
    office.publish(*(to("phone") for _ in range(MOST_GIVEN + 5)))
    office.run()
    assert len(office.mails) == MOST_GIVEN
    for _ in range(MOST_GIVEN):
        office.say(run=False)
    office.run()
    assert len(office.mails) == 5


def test_large_messages_are_given_one_by_one() -> None:
    office = Office(Limits(resident=1 << 30))
    office.connect()
    office.publish(*(to("phone", bytes(800_000)) for _ in range(3)))
    office.run()
    assert len(office.mails) == 1


def test_a_body_that_was_left_to_the_store_is_fetched_first() -> None:
    office = Office(Limits(resident=0))
    office.connect()
    office.publish(to("phone", b"one"), to("phone", b"two"))
    office.run()
    office.crash()
    office.run()
    assert office.mails == []
    office.fetch()
    assert [mail.body for mail in office.mails] == [b"one"]
    office.say()
    office.fetch()
    assert [mail.body for mail in office.mails] == [b"two"]


def test_publishers_to_one_device_are_sent_away_while_too_many_wait() -> None:
    office = Office(queue=2)
    office.connect()
    office.publish(to("phone"), to("phone"))
    with pytest.raises(QuotaExceeded, match="too many messages wait for the surrogate"):
        office.publish(to("phone"))
    office.run()
    office.say()
    assert office.publish(to("phone"))


def test_a_message_for_many_is_fanned_out_as_there_is_room() -> None:
    office = Office(Limits(fanout_batch=2), queue=3)
    for n in range(8):
        office.connect(f"phone-{n}")
        office.gateway.topics.subscribe(APP, f"phone-{n}", "news", office.now)
    office.publish(to("topic:news"))
    office.run()
    assert office.post.waiting == 3
    seen = set()
    for _ in range(8):
        seen.add(office.mails[0].device)
        office.say()
        assert office.post.waiting <= 3
    assert len(seen) == 8
    assert office.states()[State.SENDING] == 8


def test_a_device_is_told_when_too_many_wait() -> None:
    office = Office(queue=1)
    office.connect("tablet")
    phone = office.connect("phone")
    office.hear(phone, publication(0, b"1"), publication(1, b"2"))
    (refusal,) = office.messages(phone)
    assert b"quota_exceeded" in refusal.body
    assert office.acks(phone)[-1] == 2


def test_a_removed_device_takes_what_it_sent_along() -> None:
    office = Office()
    office.connect("tablet")
    phone = office.connect("phone")
    office.hear(phone, publication(0, b"up"))
    office.publish(to("phone"))
    office.run()
    office.gateway.admin.remove(APP, "phone", office.now)
    office.run()
    assert office.post.waiting == 0
    assert rows_of(office.store, SurrogatesInMemory).kept.consults == {}
    assert office.gateway.deliveries.items == {}
    office.crash()
    office.run()
    assert office.mails == []


def test_after_a_failure_it_is_tried_again_with_the_state_as_it_was() -> None:
    office = Office()
    office.connect()
    keys = office.publish(to("phone", b"1"), to("phone", b"2"))
    office.run()
    office.fail()
    assert office.mails == []  # It is slept over.
    office.pass_time(100 * MILLISECOND)
    assert [(mail.key, mail.attempt) for mail in office.mails] == [(keys[0], 2), (keys[1], 1)]


def test_failures_are_remembered_across_a_crash() -> None:
    office = Office(attempts=2)
    phone = office.connect()
    office.publish(to("phone"))
    office.run()
    office.fail()
    office.crash()
    phone = office.connect()
    (mail,) = office.mails
    assert mail.attempt == 2
    office.fail()
    assert office.bodies(phone) == [b"hello"]


@pytest.mark.parametrize("failing", list(Failing))
def test_what_fails_too_often_goes_on_or_is_refused(failing: Failing) -> None:
    office = Office(attempts=3, failing=failing)
    phone = office.connect()
    (key,) = office.publish(to("phone"))
    for _ in range(3):
        office.pass_time(2 * SECOND)
        office.fail("ZeroDivisionError at album.py:6")
    told = office.reasons(key)
    assert told[1] == "its surrogate failed (1 of 3): ZeroDivisionError at album.py:6"
    assert told[2] == "its surrogate failed (2 of 3): ZeroDivisionError at album.py:6"
    if failing is Failing.RELAY:
        assert office.bodies(phone) == [b"hello"]
        assert told[3].startswith("relayed as it is, since its surrogate failed: ZeroDivisionErr")
    else:
        assert office.bodies(phone) == []
        assert office.state(key) is State.SUPPRESSED
        assert told[3].startswith("refused, since its surrogate failed: ZeroDivisionError")


def test_without_hope_it_is_not_tried_again() -> None:
    office = Office(attempts=3)
    phone = office.connect()
    office.publish(to("phone", b"1"), to("phone", b"2"))
    office.run()
    office.fail("it cannot be loaded", hopeless=True)
    assert office.mails == []
    assert office.bodies(phone) == [b"1", b"2"]


def test_a_device_whose_message_is_refused_hears_of_it() -> None:
    office = Office(attempts=1, failing=Failing.REFUSE)
    office.connect("tablet")
    phone = office.connect("phone")
    office.hear(phone, publication(0, b"up"))
    office.fail()
    (refusal,) = office.messages(phone)
    assert b"surrogate_failed" in refusal.body


def test_words_about_what_was_not_asked_are_ignored() -> None:
    office = Office()
    office.connect()
    office.publish(to("phone"))
    office.run()
    number = office.mails[0].number
    assert (
        office.gateway.surrogates.consulted(APP, number + 1, changed(b"x"), office.now) is not None
    )
    assert (
        office.gateway.surrogates.consulted("other", number, changed(b"x"), office.now) is not None
    )
    office.gateway.surrogates.failed(APP, number + 1, "?", office.now)
    office.say()
    assert office.gateway.surrogates.consulted(APP, number, changed(b"x"), office.now) is not None


def test_when_the_surrogate_is_gone_what_waited_goes_on() -> None:
    office = Office()
    office.connect("tablet")
    phone = office.connect("phone")
    office.publish(to("phone", b"down"))
    office.hear(phone, publication(0, b"up"))
    office.identity = Rig().identity
    office.crash()
    tablet = office.connect("tablet")
    phone = office.connect("phone")
    assert office.bodies(phone) == [b"down"]
    assert office.bodies(tablet) == [b"up"]
    assert rows_of(office.store, SurrogatesInMemory).kept.consults == {}
    office.crash()
    assert office.gateway.surrogates not in office.gateway.features


def test_what_the_gateway_says_itself_is_not_asked_about() -> None:
    office = Office()
    phone = office.connect()
    office.hear(phone, publication(0, target="device:nobody"))
    assert office.mails == []
    (refusal,) = office.messages(phone)
    assert b"not_found" in refusal.body
