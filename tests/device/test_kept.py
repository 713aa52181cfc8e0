"""Ranked topics on the device, frame by frame, and across its own crash."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.device.inbox import Inbox
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.message import Message
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import Looked, Retracted, Withdrawn
from lasthop.device.terms import DeviceTerms
from lasthop.message import first_key_at
from lasthop.wire.hop.feeds import (
    FeedEnded,
    FeedTerms,
    Forget,
    Instruction,
    NewRank,
    Report,
    ShowKept,
    TopicWithdrawn,
    Why,
    decode_look,
    decode_report,
    encode_instructions,
)
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    Ack,
    Dropped,
    Headers,
    MessageFrame,
    Operation,
    Welcome,
)

NOW: Micros = 1_800_000_000 * SECOND
KEY = first_key_at(NOW)
TERMS = DeviceTerms(app="app", name="phone", storage=9)


class Phone:
    """A session whose every change is durable at once."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.now = NOW
        self.sent = 0
        self.session = DeviceSession(TERMS, inbox.load())
        self.said: list[object] = []
        self.connect()

    def connect(self, *, epoch: int = 1, resumed: bool = False) -> None:
        self.settle()
        self.hello = self.session.hello()
        welcome = Welcome(
            incarnation=bytes(8),
            epoch=epoch,
            resumed=resumed,
            features=int(ALL_FEATURES),
            superseded=0 if self.hello.epoch is not None and not resumed else None,
        )
        assert self.session.welcomed(self.hello, welcome, self.now)
        self.settle()

    def settle(self) -> None:
        while (change := self.session.change()) is not None:
            self.inbox.apply(change)
            self.session.committed(change.n)
        self.said += self.session.frames()

    def crash(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.session = DeviceSession(TERMS, inbox.load())
        self.said = []

    def receive(self, *frames: MessageFrame) -> None:
        self.session.received(frames, self.now)
        self.settle()

    def keep(self, n: int, rank: float, ttl: int | None = None) -> int:
        headers = Headers(rank=rank, keep=True, deliver_within=ttl)
        self.receive(MessageFrame(self.sent, KEY + n, "news", headers, b"%d" % n))
        self.sent += 1
        return KEY + n

    def instruct(self, *instructions: Instruction, reply_to: int | None = None) -> None:
        headers = Headers(operation=Operation.FEED, in_reply_to=reply_to)
        body = encode_instructions(instructions)
        self.receive(MessageFrame(self.sent, KEY + 900 + self.sent, "news", headers, body))
        self.sent += 1

    def read(self, n: int | None = None) -> list[int]:
        messages = self.session.ranked.read("news", n, self.now)
        self.settle()
        self.session.finished(*messages)
        self.settle()
        return keys(messages)

    def reports(self) -> list[Report]:
        frames = [f for f in self.said if isinstance(f, MessageFrame)]
        found = [f for f in frames if f.headers and f.headers.operation == Operation.REPORT]
        return [decode_report(frame.body) for frame in found]

    @property
    def ack(self) -> Ack:
        return [frame for frame in self.said if isinstance(frame, Ack)][-1]


def keys(messages: list[Message]) -> list[int]:
    return [message.key for message in messages]


@pytest.fixture(params=["memory", "sqlite"])
def phone(request: pytest.FixtureRequest, tmp_path: Path) -> Phone:
    inbox: Inbox = MemoryInbox()
    if request.param == "sqlite":
        inbox = SqliteInbox(tmp_path / "inbox.db")
    return Phone(inbox)


def again(phone: Phone, tmp_path: Path) -> None:
    if isinstance(phone.inbox, MemoryInbox):
        phone.crash(phone.inbox.crash())
    else:
        phone.inbox.close()
        phone.crash(SqliteInbox(tmp_path / "inbox.db"))


def test_a_kept_message_is_acknowledged_and_nobody_sees_it(phone: Phone) -> None:
    phone.keep(1, 5.0)
    assert phone.ack == Ack(1, 1)
    assert phone.session.ready(phone.now) == []
    assert phone.session.ranked.unread("news") == 1


def test_a_read_without_contact_shows_the_best_and_is_reported(phone: Phone) -> None:
    a, b, c = phone.keep(1, 5.0), phone.keep(2, 7.0), phone.keep(3, 6.0)
    phone.instruct(FeedTerms(2))
    assert phone.read() == [b, c]
    assert phone.read(9) == [a]
    reads = [read for report in phone.reports() for read in report.reads]
    assert [(read.wanted, read.keys) for read in reads] == [(None, (b, c)), (9, (a,))]
    assert all(read.at == NOW // MILLISECOND for read in reads)


def test_everything_is_there_after_a_crash(phone: Phone, tmp_path: Path) -> None:
    a, b = phone.keep(1, 5.0), phone.keep(2, 4.0)
    phone.instruct(FeedTerms(1), NewRank(b, 6.0))
    again(phone, tmp_path)
    phone.connect(resumed=True)
    assert phone.read() == [b]
    assert phone.read() == [a]


def test_what_was_handed_out_comes_again_after_a_crash(phone: Phone, tmp_path: Path) -> None:
    a = phone.keep(1, 5.0, ttl=500)
    messages = phone.session.ranked.read("news", None, phone.now)
    phone.settle()
    assert keys(messages) == [a]
    again(phone, tmp_path)
    phone.now += 10 * SECOND  # Its time is up, but it was read in time, and the gateway hears so.
    phone.connect(resumed=True)
    (message,) = phone.session.ready(phone.now)
    assert (message.key, message.redelivered) == (a, True)


def test_a_look_asks_with_the_best_and_gets_its_answer(phone: Phone) -> None:
    a, b = phone.keep(1, 5.0), phone.keep(2, 7.0)
    look = phone.session.ranked.look("news", 1, phone.now)
    phone.settle()
    frame = [f for f in phone.said if isinstance(f, MessageFrame)][-1]
    asked = decode_look(frame.body)
    assert (asked.wanted, asked.queue_size, asked.held) == (1, 2, (b,))
    c = phone.keep(3, 9.0)
    before = phone.ack
    phone.instruct(ShowKept((c, a)), reply_to=look)
    (answer,) = [h for h in phone.session.session_events() if isinstance(h, Looked)]
    assert (answer.key, keys(answer.messages)) == (look, [c, a])
    assert phone.ack.delivered == before.delivered, "nobody has had it yet"
    phone.session.finished(*answer.messages)
    phone.settle()
    assert phone.ack.delivered == phone.sent
    assert not any(isinstance(frame, Dropped) for frame in phone.said)


def test_an_answer_that_comes_too_late_leaves_everything_unread(phone: Phone) -> None:
    a = phone.keep(1, 5.0)
    look = phone.session.ranked.look("news", 1, phone.now)
    phone.settle()
    instead = phone.session.ranked.read_instead(look, "news", 1, phone.now) or []
    assert keys(instead) == [a]
    phone.settle()
    b = phone.keep(2, 7.0)
    phone.instruct(ShowKept((b, a)), reply_to=look)
    assert phone.session.ranked.unread("news") == 1
    assert phone.reports()[-1].unread == (b,)
    phone.session.finished(*instead)
    phone.settle()
    assert any(isinstance(frame, Dropped) for frame in phone.said)
    assert phone.session.ranked.read_instead(look, "news", 1, phone.now) is None


def test_what_is_shown_unasked_comes_as_messages_do(phone: Phone) -> None:
    a, b = phone.keep(1, 5.0), phone.keep(2, 7.0)
    phone.instruct(ShowKept((b, a)))
    messages = phone.session.ready(phone.now)
    assert keys(messages) == [b, a]
    phone.session.finished(*messages)
    phone.settle()
    assert phone.ack.delivered == phone.sent


def test_a_retraction_is_told_as_far_as_it_concerns_anybody(phone: Phone) -> None:
    a, b = phone.keep(1, 5.0), phone.keep(2, 7.0)
    assert phone.read(1) == [b]
    phone.instruct(Forget(Why.RANK, (a,)), Forget(Why.RANK, (b,)), Forget(Why.RANK, (KEY + 99,)))
    told = [h for h in phone.session.session_events() if isinstance(h, Retracted)]
    assert told == [Retracted(a, had=False), Retracted(b, had=True)]
    assert phone.session.ranked.unread("news") == 0


def test_what_makes_room_is_not_a_retraction(phone: Phone) -> None:
    a = phone.keep(1, 5.0)
    phone.instruct(Forget(Why.ROOM, (a,)))
    assert not [h for h in phone.session.session_events() if isinstance(h, Retracted)]
    assert phone.keep(1, 5.0) == a
    assert phone.session.ranked.unread("news") == 1, "it may come again"


def test_what_expires_unread_is_let_go_and_reported(phone: Phone) -> None:
    a = phone.keep(1, 5.0, ttl=1000)
    assert phone.session.next_expiry() == NOW + SECOND
    phone.now += 2 * SECOND
    phone.session.expire(phone.now)
    phone.settle()
    assert phone.session.ranked.unread("news") == 0
    assert phone.session.next_expiry() is None
    assert phone.reports()[-1].lapsed == (a,)


def test_a_withdrawn_topic_and_an_ended_subscription(phone: Phone, tmp_path: Path) -> None:
    phone.keep(1, 5.0)
    phone.instruct(TopicWithdrawn(), FeedEnded())
    assert Withdrawn("news") in phone.session.session_events()
    again(phone, tmp_path)
    assert phone.session.ranked.unread("news") == 0


def test_in_a_new_epoch_the_device_says_what_it_keeps(phone: Phone) -> None:
    a = phone.keep(1, 5.0, ttl=1000)
    phone.said.clear()
    phone.sent = 0
    phone.connect(epoch=2)
    (report,) = phone.reports()
    assert report.held == (("news", ((a, 5.0, NOW // MILLISECOND + 1000),)),)
    phone.keep(1, 5.0, ttl=1000)
    assert phone.session.ranked.unread("news") == 1, "it is known"
    assert phone.hello.storage == 9


def test_what_was_read_and_is_sent_again_is_reported(phone: Phone) -> None:
    a = phone.keep(1, 5.0)
    assert phone.read() == [a]
    phone.sent = 0
    phone.connect(epoch=2)
    phone.keep(1, 5.0)
    assert phone.reports()[-1].had == (a,)
    assert phone.session.ranked.unread("news") == 0


def test_the_gateway_hears_how_far_reports_go(phone: Phone) -> None:
    phone.keep(1, 5.0)
    phone.session.lost()
    assert phone.session.hello().assigned is None
    phone.read()
    assert phone.session.hello().assigned == 1


def test_an_inbox_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    SqliteInbox(tmp_path / "inbox.db").close()
    database = sqlite3.connect(tmp_path / "inbox.db")
    database.executescript(
        "DROP TABLE lasthop_kept; DROP TABLE lasthop_feed; DROP TABLE lasthop_request;"
        "DROP TABLE lasthop_flow; DROP TABLE lasthop_piece; DROP TABLE lasthop_lane;"
        "DROP TABLE lasthop_inbox; ALTER TABLE lasthop_outbox DROP COLUMN lane;"
        "CREATE TABLE lasthop_inbox (position INTEGER PRIMARY KEY, number INTEGER,"
        " default_type TEXT, frame BLOB NOT NULL);"
        "UPDATE lasthop_session SET version = 1"
    )
    database.close()
    phone = Phone(SqliteInbox(tmp_path / "inbox.db"))
    phone.keep(1, 5.0)
    assert phone.session.ranked.unread("news") == 1


def test_what_waits_behind_a_gap_stays_behind_what_fills_it(phone: Phone, tmp_path: Path) -> None:
    a = phone.keep(1, 5.0)
    late = MessageFrame(2, KEY + 12, None, None, b"late")
    phone.receive(late)
    assert phone.read() == [a]  # It takes a place in the inbox, after the one that is missing.
    phone.receive(MessageFrame(1, KEY + 11, None, None, b"early"))
    again(phone, tmp_path)
    assert [message.body for message in phone.session.ready(phone.now)] == [b"early", b"late"]
