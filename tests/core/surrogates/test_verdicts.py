"""What comes of a surrogate's word: all of it in one commit, or nothing."""

from __future__ import annotations

import pytest

from lasthop.clock import SECOND
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.message import TargetKind
from lasthop.store.surrogates import SurrogateChanges
from lasthop.store.tables.surrogates import SurrogatesInMemory
from lasthop.surrogate.mail import Content, MailAction, OutgoingMail, Verdict
from lasthop.wire.hop.frames import Headers, MessageFrame, Operation
from tests.core.rig import APP, START, publication, to
from tests.core.surrogates.office import (
    Office,
    answer,
    changed,
    drop,
    remembering,
    sending,
)
from tests.store.peek import rows_of


def test_a_changed_message_keeps_its_id_and_has_other_content() -> None:
    office = Office()
    phone = office.connect()
    (key,) = office.publish(to("phone", b"hello", title="old", headers=(("a", "1"),)))
    office.run()
    office.say(changed(b"bye", title="new", content_type="text/x", headers=(("b", "2"),), rank=3.0))
    (frame,) = office.messages(phone)
    assert (frame.key, frame.body) == (key, b"bye")
    assert frame.headers is not None
    assert (frame.headers.title, frame.headers.content_type) == ("new", "text/x")
    assert (frame.headers.extra, frame.headers.rank) == ((("b", "2"),), 3.0)
    told = "changed by its surrogate: body, content_type, title, headers, rank"
    assert office.reasons(key)[1] == told
    office.ack(phone, 1)
    assert office.state(key) is State.DELIVERED


def test_one_device_gets_it_changed_and_the_other_as_it_is() -> None:
    office = Office()
    channels = {}
    for name in ("phone", "tablet"):
        channels[name] = office.connect(name)
        office.gateway.topics.subscribe(APP, name, "news", office.now)
    (key,) = office.publish(to("topic:news", b"long text"))
    office.run()
    for _ in range(2):
        verdict = changed(b"short") if office.mails[0].device == "phone" else Verdict()
        office.say(verdict)
    assert office.bodies(channels["phone"]) == [b"short"]
    assert office.bodies(channels["tablet"]) == [b"long text"]
    assert {row.state for row in office.store.deliveries(key)} == {State.SENDING}


@pytest.mark.parametrize("resident", [0, 1 << 20])
def test_changed_content_survives_a_crash_and_is_sent_again(resident: int) -> None:
    office = Office(Limits(resident=resident))
    (key,) = _publish_to_absent(office)
    office.say(changed(b"bye", title="new"))
    office.crash()
    phone = office.connect()
    office.fetch()
    (frame,) = office.messages(phone)
    assert (frame.key, frame.body, frame.headers and frame.headers.title) == (key, b"bye", "new")
    office.crash()  # In flight.
    again = office.resume()
    office.fetch()
    assert office.bodies(again) == [b"bye"]
    office.ack(again, 1)
    assert office.state(key) is State.DELIVERED
    assert office.gateway.deliveries.items == {}
    assert not any(
        row.open for row in rows_of(office.store, SurrogatesInMemory).kept.revisions.values()
    )


def _publish_to_absent(office: Office) -> list[int]:
    office.lose(office.connect())
    keys = office.publish(to("phone", b"hello"))
    office.run()
    office.fetch()
    return keys


def test_a_changed_message_can_be_cancelled_like_any_other() -> None:
    office = Office()
    (key,) = _publish_to_absent(office)
    office.say(changed(b"bye"))
    withdrawal = office.gateway.cancel(APP, key, office.now)
    office.run()
    assert withdrawal is not None
    assert withdrawal.taken_back == 1
    assert office.state(key) is State.CANCELLED
    assert office.gateway.deliveries.items == {}
    assert office.gateway.deliveries._resident_bytes == 0


def test_a_publisher_gets_the_surrogates_answer() -> None:
    office = Office()
    phone = office.connect()
    (key,) = office.publish(to("phone", b"what?", reply_before=START + SECOND))
    office.gateway.deliveries.watch(key)
    office.run()
    assert office.mails[0].reply_before == START + SECOND
    office.say(answer(b"this", content_type="text/x"))
    row = office.row(key)
    assert row.state == State.SUPPRESSED
    reply = office.store.messages([row.reply])[row.reply]
    assert (reply.body, reply.content_type, reply.in_reply_to) == (b"this", "text/x", key)
    assert (reply.source, reply.target.kind) == ("surrogate:phone", TargetKind.PUBLISHER)
    assert office.messages(phone) == []
    assert any(change.reply == row.reply for change in office.changes)
    assert office.story(key) == ["accepted", "replied", "suppressed"]
    assert office.reasons(key)[-1] == "answered by its surrogate"


def test_a_device_that_asks_a_device_gets_the_surrogates_answer() -> None:
    office = Office()
    office.connect("tablet")
    phone = office.connect("phone")
    asked = MessageFrame(0, 77, None, Headers(to="device:tablet", reply_within=60_000), b"what?")
    office.hear(phone, asked)
    office.say()  # From the phone,
    assert office.mails[0].device == "tablet"
    office.say(answer(b"this"))  # for the tablet.
    (frame,) = office.messages(phone)
    assert frame.headers is not None
    assert (frame.body, frame.headers.in_reply_to) == (b"this", 77)
    assert (frame.headers.source, frame.headers.answer) == ("device:tablet", True)


def test_a_device_can_be_answered_before_anybody_else_hears() -> None:
    office = Office()
    tablet = office.connect("tablet")
    phone = office.connect("phone")
    office.hear(phone, MessageFrame(0, 77, None, Headers(to="device:tablet"), b"what?"))
    office.say(answer(b"this"))
    (frame,) = office.messages(phone)
    assert frame.headers is not None
    assert (frame.body, frame.headers.in_reply_to) == (b"this", 77)
    assert office.messages(tablet) == []


def test_a_dropped_message_ends_with_the_reason() -> None:
    office = Office()
    phone = office.connect()
    (key,) = office.publish(to("phone"))
    office.run()
    office.say(drop("he sleeps"))
    assert office.state(key) is State.SUPPRESSED
    assert office.reasons(key)[-1] == "dropped by its surrogate: he sleeps"
    assert office.messages(phone) == []


def test_a_dropped_message_of_a_device_leaves_nothing_but_its_story() -> None:
    office = Office()
    tablet = office.connect("tablet")
    phone = office.connect("phone")
    office.hear(phone, publication(0))
    key = office.mails[0].key
    office.say(drop())
    assert office.story(key) == ["vetted"]
    assert office.reasons(key) == ["dropped by its surrogate"]
    assert office.messages(tablet) == office.messages(phone) == []
    assert office.gateway.deliveries.items == {}


def test_a_message_of_a_device_goes_on_changed() -> None:
    office = Office()
    tablet = office.connect("tablet")
    phone = office.connect("phone")
    office.hear(phone, publication(0, b"raw"))
    office.say(changed(b"cooked"))
    (mail,) = office.mails
    assert mail.body == b"cooked"  # On its way to the tablet it is asked about again.
    assert office.story(mail.key) == ["accepted", "vetted"]
    assert office.reasons(mail.key)[1] == "changed by its surrogate: body"
    office.say()
    (frame,) = office.messages(tablet)
    assert frame.headers is not None
    assert (frame.body, frame.headers.source) == (b"cooked", "device:phone")


@pytest.mark.parametrize("operation", [Operation.REPLY, int(Operation.REPLY)], ids=["enum", "wire"])
def test_a_device_answers_through_the_surrogate(operation: Operation) -> None:
    office = Office()
    phone = office.connect()
    (key,) = office.publish(to("phone", b"what?", reply_before=START + SECOND))
    office.run()
    office.say()
    reply = Headers(operation=operation, in_reply_to=key)
    office.hear(phone, MessageFrame(0, None, None, reply, b"raw"))
    assert office.row(key).reply == 0
    (mail,) = office.mails
    assert (mail.answers, mail.body) == (key, b"raw")
    office.say(changed(b"cooked"))
    row = office.row(key)
    assert office.store.messages([row.reply])[row.reply].body == b"cooked"


def test_an_answer_cannot_be_answered() -> None:
    office = Office(attempts=1)
    phone = office.connect()
    (key,) = office.publish(to("phone", b"what?"))
    office.run()
    office.say()
    reply = Headers(operation=Operation.REPLY, in_reply_to=key)
    office.hear(phone, MessageFrame(0, None, None, reply, b"this"))
    refused = office.say(answer(b"why?"))
    assert refused == "the answer of a device cannot be answered"
    row = office.row(key)
    assert office.store.messages([row.reply])[row.reply].body == b"this"


def test_what_the_surrogate_sends_leaves_unasked() -> None:
    office = Office()
    phone = office.connect()
    office.publish(to("phone", b"hello"))
    office.run()
    office.say(sending("device:phone", b"and more", priority=7, ttl=60 * SECOND))
    assert office.bodies(phone) == [b"and more", b"hello"]
    assert office.mails == []
    more = office.messages(phone)[0]
    assert more.headers is not None
    assert more.headers.deliver_within == 60_000


def test_everything_of_a_verdict_is_in_one_commit() -> None:
    office = Office()
    office.connect()
    office.publish(to("phone", b"hello"))
    office.run()
    verdict = Verdict(
        MailAction.RELAY,
        Content(b"bye"),
        sends=(OutgoingMail("device:phone", Content(b"more")),),
        state={"n": b"\x01"},
    )
    assert office.say(verdict, run=False) is None
    commit = office.take()
    assert commit is not None
    changes = commit.of(SurrogateChanges)
    assert [row.done for row in changes.consults.values()] == [True]
    assert [row.value for row in changes.states.values()] == [b"\x01"]
    assert [row.open for row in changes.revisions.values()] == [True]
    assert sorted(m.body for m in commit.messages) == [b"bye", b"more"]


@pytest.mark.parametrize(
    "verdict, why",
    [
        (Verdict(state={"n": bytes(2000)}), "the surrogate's state is too large"),
        (changed(bytes(2000)), "body too large"),
        (sending("device:nobody", b"x"), "no such device"),
        (sending("nonsense", b"x"), "a target is device:NAME"),
        (sending("device:phone", bytes(2000)), "body too large"),
        (
            Verdict(sends=(OutgoingMail("device:phone", Content(b"x")),) * 101),
            "the surrogate sends too many messages",
        ),
    ],
    ids=["state", "content", "unknown", "nonsense", "large", "many"],
)
def test_a_verdict_that_cannot_be_followed_counts_for_nothing(verdict: Verdict, why: str) -> None:
    office = Office(Limits(body=1000), attempts=2, state=1000)
    phone = office.connect()
    (key,) = office.publish(to("phone", b"hello"))
    office.run()
    whole = Verdict(
        verdict.action,
        verdict.content,
        sends=(OutgoingMail("device:phone", Content(b"fine")), *verdict.sends),
        state={"m": b"\x01", **verdict.state},
    )
    refused = office.say(whole)
    assert refused is not None
    assert why in refused
    assert office.memory == office.stored_state == {}
    assert office.messages(phone) == []
    assert why in office.reasons(key)[-1]
    office.pass_time(SECOND)
    office.say(remembering(n=b"\x02"))
    assert office.bodies(phone) == [b"hello"]
    assert office.stored_state == {"n": b"\x02"}


def test_entries_of_the_state_come_and_go() -> None:
    office = Office()
    office.connect()
    office.publish(*(to("phone") for _ in range(3)))
    office.run()
    office.say(remembering(a=b"\x01", b=b"\x02"))
    office.say(remembering(a=b"\x03", b=b""))
    office.say(remembering(c=b"\x04"))
    assert office.memory == office.stored_state == {"a": b"\x03", "c": b"\x04"}
    office.crash()
    assert office.memory == {"a": b"\x03", "c": b"\x04"}
    assert office.post.state_size == 2 * (1 + 1 + 32)


def test_the_target_of_a_devices_message_may_go_while_it_waits() -> None:
    office = Office()
    office.connect("tablet")
    phone = office.connect("phone")
    office.hear(phone, publication(0))
    office.gateway.admin.remove(APP, "tablet", office.now)
    office.say()
    (refusal,) = office.messages(phone)
    assert b"not_found" in refusal.body
