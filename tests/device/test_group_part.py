"""Groups on the device, frame by frame, and across its own crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from lasthop.device import compose
from lasthop.device.inbox import Inbox
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.message import Message
from lasthop.device.session_events import Decided, Retracted
from lasthop.errors import InvalidRequest
from lasthop.message import Binding
from lasthop.wire.hop.decisions import GroupDecision, GroupVerdict, encode_decision
from lasthop.wire.hop.frames import Ack, Dropped, Headers, MessageFrame, Operation
from tests.device.test_kept import KEY, Phone, again


class Member(Phone):
    """A device in a group."""

    def get(self, n: int, binding: Binding = Binding.NONE, ttl: int | None = None) -> int:
        headers = Headers(group="crew", binding=binding, deliver_within=ttl)
        self.receive(self.frame(KEY + n, headers, b"%d" % n))
        return KEY + n

    def decide(self, verdict: GroupVerdict, about: int, by: str = "") -> None:
        self.receive(self.decision(verdict, about, by))

    def decision(self, verdict: GroupVerdict, about: int, by: str = "") -> MessageFrame:
        headers = Headers(operation=Operation.DECISION, in_reply_to=about)
        body = encode_decision(GroupDecision(verdict, by))
        return self.frame(KEY + 900 + self.sent, headers, body)

    def frame(self, key: int, headers: Headers, body: bytes) -> MessageFrame:
        """The next number."""
        self.sent += 1
        return MessageFrame(self.sent - 1, key, None, headers, body)

    def shown(self) -> list[int]:
        """Hand over what is ready, and let the application be done with it."""
        messages = self.ready()
        self.session.finished(*messages)
        self.settle()
        return [message.key for message in messages]

    def ready(self) -> list[Message]:
        messages = self.session.ready(self.now)
        self.settle()
        return messages


@pytest.fixture(params=["memory", "sqlite"])
def phone(request: pytest.FixtureRequest, tmp_path: Path) -> Member:
    inbox: Inbox = MemoryInbox()
    if request.param == "sqlite":
        inbox = SqliteInbox(tmp_path / "inbox.db")
    return Member(inbox)


@pytest.mark.parametrize("crash", [False, True])
def test_what_is_held_is_shown_when_the_group_says_so(
    phone: Member, tmp_path: Path, crash: bool
) -> None:
    held = phone.get(1, Binding.ATOMIC)
    assert phone.ack == Ack(1, 1)
    plain = phone.get(2)
    assert phone.shown() == [plain]
    if crash:
        again(phone, tmp_path)
        phone.connect(resumed=True)
        assert phone.shown() == []
    phone.decide(GroupVerdict.RELEASE, held)
    assert phone.ack == Ack(3, 2), "not before the application has had it"
    assert phone.shown() == [held]
    assert phone.ack == Ack(3, 3)


def test_a_crash_between_the_release_and_the_application_loses_nothing(
    phone: Member, tmp_path: Path
) -> None:
    held = phone.get(1, Binding.ATOMIC)
    phone.decide(GroupVerdict.RELEASE, held)
    again(phone, tmp_path)
    phone.connect(resumed=True)
    assert phone.shown() == [held]
    assert phone.session.hello().delivered == 2


def test_a_released_message_is_never_too_late(phone: Member) -> None:
    held = phone.get(1, Binding.ATOMIC, ttl=1)
    phone.now += 10_000_000
    phone.decide(GroupVerdict.RELEASE, held)
    assert phone.shown() == [held]


@pytest.mark.parametrize("crash", [False, True])
def test_a_release_before_its_message_does_not_hide_the_message(
    phone: Member, tmp_path: Path, crash: bool
) -> None:
    phone.decide(GroupVerdict.RELEASE, KEY + 1)
    assert [f.ranges for f in phone.said if isinstance(f, Dropped)] == [((0, 1),)]
    held = phone.get(1, Binding.ATOMIC)
    assert phone.shown() == []
    if crash:
        again(phone, tmp_path)
        phone.connect(resumed=True)
    phone.get(1)
    assert phone.shown() == [held], "the gateway sent it once more, to be shown"
    assert phone.ack == Ack(3, 3)
    phone.get(1)
    assert phone.shown() == []


def test_an_aborted_message_is_gone(phone: Member, tmp_path: Path) -> None:
    held = phone.get(1, Binding.ATOMIC)
    phone.decide(GroupVerdict.ABORT, held)
    assert phone.ack == Ack(2, 2)
    again(phone, tmp_path)
    phone.connect(resumed=True)
    phone.decide(GroupVerdict.RELEASE, held)
    assert phone.shown() == []
    assert [f.ranges for f in phone.said if isinstance(f, Dropped)] == [((2, 3),)]


def test_a_copy_that_comes_again_changes_nothing(phone: Member) -> None:
    held = phone.get(1, Binding.ATOMIC)
    phone.get(1, Binding.ATOMIC)
    phone.decide(GroupVerdict.RELEASE, held)
    assert phone.shown() == [held]
    phone.decide(GroupVerdict.RELEASE, held)
    assert phone.shown() == []
    assert phone.ack == Ack(4, 4)


def test_what_is_held_survives_a_new_numbering(phone: Member) -> None:
    held = phone.get(1, Binding.ATOMIC)
    phone.sent = 5
    beyond = phone.get(2, Binding.ATOMIC)  # Behind a gap: acknowledged as received all the same.
    assert phone.ack.individual == ((5, 6),)
    phone.connect(epoch=2)
    phone.sent = 0
    phone.decide(GroupVerdict.RELEASE, held)
    phone.decide(GroupVerdict.RELEASE, beyond)
    assert phone.shown() == [held, beyond]


def test_a_message_that_somebody_else_claimed_is_not_shown(phone: Member) -> None:
    seen = phone.get(1, Binding.CLAIM)
    (message,) = phone.ready()
    phone.decide(GroupVerdict.RETRACT, seen, "anna")
    unseen = KEY + 2
    phone.receive(
        phone.frame(unseen, Headers(binding=Binding.CLAIM), b"2"),
        phone.decision(GroupVerdict.RETRACT, unseen, "anna"),
    )
    phone.decide(GroupVerdict.RETRACT, KEY + 77, "anna")
    told = [h for h in phone.session.session_events() if isinstance(h, Retracted)]
    assert told == [Retracted(seen, had=True), Retracted(unseen, had=False)]
    assert [f.ranges for f in phone.said if isinstance(f, Dropped)] == [((2, 3),)]
    phone.session.finished(message)
    phone.settle()
    assert phone.ready() == []


def test_answers_and_outcomes_are_told_once(phone: Member) -> None:
    claimed = phone.get(1, Binding.CLAIM)
    (message,) = phone.ready()
    key = compose.claim(message).queue(phone.session, phone.now)
    phone.settle()
    (sent,) = [f for f in phone.said if isinstance(f, MessageFrame)]
    assert sent.headers is not None
    assert (sent.headers.operation, sent.headers.in_reply_to) == (Operation.CLAIM, claimed)
    phone.decide(GroupVerdict.GRANT, key, "phone")
    phone.decide(GroupVerdict.CLAIMED, 7, "phone")
    told = [h for h in phone.session.session_events() if isinstance(h, Decided)]
    assert told == [
        Decided(key, GroupDecision(GroupVerdict.GRANT, "phone")),
        Decided(7, GroupDecision(GroupVerdict.CLAIMED, "phone")),
    ]
    assert not phone.session.session_events()


def test_only_what_can_be_claimed_is_claimed(phone: Member) -> None:
    phone.get(1)
    (message,) = phone.ready()
    assert (message.group, message.claimable) == ("crew", False)
    with pytest.raises(InvalidRequest, match="cannot be claimed"):
        compose.claim(message)
    with pytest.raises(InvalidRequest, match="both atomic and claimable"):
        compose.message("group:crew", "x", atomic=True, claim=True)
