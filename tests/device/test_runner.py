"""A turn of the desk: what happened, what is durable, what follows."""

from __future__ import annotations

import pytest

from lasthop.clock import Micros
from lasthop.device import compose, runner
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.message import Message
from lasthop.device.runner import HandlerTransaction, SessionRunner
from lasthop.device.session import DeviceSession
from lasthop.errors import OutOfOrder, Overloaded, StoreBroken, StoreFull
from lasthop.wire.hop.frames import Ack, Frame, MessageFrame, Welcome
from tests.device.peer import INCARNATION, NOW, TERMS, frame

WELCOME = Welcome(incarnation=INCARNATION, epoch=1)


def opened(inbox: MemoryInbox | None = None) -> SessionRunner:
    inbox = inbox or MemoryInbox()
    at = SessionRunner(DeviceSession(TERMS, inbox.load()), inbox)
    outcome = at.turn([runner.welcomed(at.hello("wifi", None), WELCOME, [])], NOW)
    assert outcome.results == [True]
    return at


def arrives(*frames: Frame) -> runner.Act:
    def act(session: DeviceSession, now: Micros) -> None:
        session.received(frames, now)

    return act


def test_a_turn_stores_acknowledges_and_hands_over() -> None:
    at = opened()
    outcome = at.turn([arrives(frame(0), frame(1))], NOW)
    assert outcome.frames == [Ack(2, 0)]
    assert [message.text for message in outcome.ready] == ["m0", "m1"]


def test_a_turn_with_a_transactional_handler_takes_one_commit() -> None:
    inbox = MemoryInbox()
    at = opened(inbox)
    at.handler = lambda message, work: work.put(message.text, b"")
    commits = inbox.commits
    outcome = at.turn([arrives(*(frame(seq) for seq in range(100)))], NOW)
    assert inbox.commits == commits + 1
    assert outcome.frames == [Ack(100, 100)]
    assert outcome.ready == []
    assert inbox.load().inbox == []


def test_an_act_that_fails_fails_alone() -> None:
    at = opened()

    def fail(session: DeviceSession, now: Micros) -> None:
        raise ZeroDivisionError

    outcome = at.turn([fail, arrives(frame(0))], NOW)
    assert isinstance(outcome.results[0], ZeroDivisionError)
    assert outcome.frames == [Ack(1, 0)]


def test_an_impossible_frame_is_a_fault_of_the_gateway() -> None:
    outcome = opened().turn([arrives(Ack(5, 5))], NOW)
    assert isinstance(outcome.fault, OutOfOrder)


def test_what_came_with_the_welcome_is_taken() -> None:
    inbox = MemoryInbox()
    at = SessionRunner(DeviceSession(TERMS, inbox.load()), inbox)
    outcome = at.turn([runner.welcomed(at.hello(None, None), WELCOME, [frame(0)])], NOW)
    assert [message.text for message in outcome.ready] == ["m0"]


def test_a_failing_handler_keeps_what_was_done_before_it() -> None:
    inbox = MemoryInbox()
    at = opened(inbox)

    def fail_at_two(message: Message, work: HandlerTransaction) -> None:
        work.put("log", (work.get("log") or b"") + message.body)
        work.send(compose.message("device:x", f"re {message.text}"))
        if message.number == 2:
            raise ZeroDivisionError

    at.handler = fail_at_two
    outcome = at.turn([arrives(*(frame(seq) for seq in range(4)))], NOW)
    assert outcome.failure is not None
    assert outcome.failure.message.text == "m2"
    assert isinstance(outcome.failure.__cause__, ZeroDivisionError)
    assert inbox.note("log") == b"m0m1"
    held = inbox.load()
    assert [row.number for row in held.inbox] == [2, 3]
    assert [row.frame.body for row in held.outbox] == [b"re m0", b"re m1"]


def test_messages_of_a_handler_are_queued_all_or_none() -> None:
    inbox = MemoryInbox()
    at = opened(inbox)

    def send_too_much(message: Message, work: HandlerTransaction) -> None:
        for _ in range(TERMS.outbox_messages + 1):
            work.send(compose.message("device:x", "y"))

    at.handler = send_too_much
    outcome = at.turn([arrives(frame(0))], NOW)
    assert outcome.failure is not None
    assert isinstance(outcome.failure.__cause__, Overloaded)
    assert inbox.load().outbox == []


def test_sql_needs_a_file() -> None:
    at = opened()
    at.handler = lambda message, work: work.execute("SELECT 1")
    outcome = at.turn([arrives(frame(0))], NOW)
    assert outcome.failure is not None
    assert str(outcome.failure.__cause__) == "only an inbox in a SQLite file takes SQL"


def test_after_a_refused_change_no_other_is_made() -> None:
    inbox = MemoryInbox()
    at = opened(inbox)
    inbox.refuse = StoreFull("no room")
    with pytest.raises(StoreFull):
        at.turn([arrives(frame(0))], NOW)
    inbox.refuse = None
    with pytest.raises(StoreBroken, match="an earlier change is missing in the inbox"):
        at.turn([], NOW)
    received = inbox.load().state.received
    at.close()
    assert received == 0


def test_after_a_refused_transaction_no_change_is_made() -> None:
    inbox = MemoryInbox()
    at = opened(inbox)
    at.handler = lambda message, work: None
    inbox.refuse = StoreFull("no room")
    with pytest.raises(StoreFull):
        at.turn([arrives(frame(0))], NOW)
    with pytest.raises(StoreBroken, match="an earlier change is missing in the inbox"):
        at.hello(None, None)


def test_the_end_writes_what_was_put_off() -> None:
    inbox = MemoryInbox()
    at = opened(inbox)
    at.turn([compose.message("device:x", "y").queue], NOW)
    at.turn([arrives(Ack(1, 1))], NOW)
    assert len(inbox.load().outbox) == 1
    kept = inbox._kept
    at.close()
    assert kept.outbox == {}


def test_without_room_messages_stay() -> None:
    at = opened()
    outcome = at.turn([compose.message("device:x", "y").queue], NOW, room=False)
    assert outcome.frames == []
    (sent,) = at.turn([], NOW).frames
    assert isinstance(sent, MessageFrame)
