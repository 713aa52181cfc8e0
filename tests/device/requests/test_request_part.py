"""Requests end once: with an answer or with their deadline, in order, whatever crashes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.device.change import Change, InboxContents, RequestRow, SessionNumbers
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.message import Message, refusal
from lasthop.device.requests.expectation import Expectation
from lasthop.device.requests.pending_requests import MOST_PENDING, Requests
from lasthop.device.session_events import Gathered, Refused, RequestAnswered, SessionEvent, TimedOut
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Overloaded
from lasthop.wire.hop.frames import (
    ASKED_TYPE,
    ERROR_TYPE,
    Ack,
    Dropped,
    Frame,
    Headers,
    MessageFrame,
)
from tests.device.peer import INCARNATION, KEY, NOW, TERMS, Peer, frame

ASKS = Headers(to="device:x", reply_within=1000)
LATER = NOW + SECOND


def welcomed(peer: Peer | None = None) -> Peer:
    peer = peer or Peer()
    assert peer.welcome()
    peer.said()
    peer.session.session_events()
    return peer


def ask(peer: Peer, headers: Headers = ASKS, *, at: Micros = NOW, **wants: object) -> int:
    expects = msgspec.convert(wants, Expectation)
    key = peer.session.requests.ask(at, expects, headers=headers, body=b"?")
    peer.said()
    peer.session.session_events()
    return key


def answer(number: int, key: int, body: str = "!", *, source: str = "device:x") -> MessageFrame:
    return frame(number, body, headers=Headers(in_reply_to=key, answer=True, source=source))


def told(session_events: list[SessionEvent]) -> list[tuple[int, str]]:
    """Answers by their text, and timeouts."""
    outcomes = []
    for session_event in session_events:
        if isinstance(session_event, RequestAnswered):
            outcomes.append((session_event.key, session_event.message.text))
        elif isinstance(session_event, TimedOut):
            outcomes.append((session_event.key, "timeout"))
    return outcomes


def heard(peer: Peer, *frames: Frame, at: Micros = NOW) -> list[tuple[int, str]]:
    peer.arrive(*frames, now=at)
    peer.said()
    return told(peer.session.session_events())


# Of the moment.


def test_the_first_answer_counts_and_the_second_is_let_go() -> None:
    peer = welcomed()
    key = ask(peer)
    assert heard(peer, answer(0, key, "one"), answer(1, key, "two")) == [(key, "one")]
    assert peer.take() == []
    peer.said()
    assert peer.session.held == 0


def test_an_answer_after_the_deadline_is_let_go_and_the_gateway_told() -> None:
    peer = welcomed()
    key = ask(peer)
    peer.session.expire(LATER)
    assert told(peer.session.session_events()) == [(key, "timeout")]
    peer.arrive(answer(0, key), now=LATER)
    assert peer.said() == [Dropped(((0, 1),)), Ack(1, 1)]
    assert peer.take() == []
    assert told(peer.session.session_events()) == []


def test_an_answer_at_the_deadline_is_too_late() -> None:
    peer = welcomed()
    key = ask(peer)
    assert heard(peer, answer(0, key), at=LATER) == []
    peer.session.expire(LATER)
    assert told(peer.session.session_events()) == [(key, "timeout")]


def test_the_session_says_when_the_first_deadline_is() -> None:
    peer = welcomed()
    assert peer.session.next_expiry() is None
    first = ask(peer)
    ask(peer, Headers(to="device:x", reply_within=5000))
    assert peer.session.next_expiry() == LATER
    heard(peer, answer(0, first))
    assert peer.session.next_expiry() == NOW + 5 * SECOND


def test_what_was_given_up_is_told_to_nobody() -> None:
    peer = welcomed()
    key = ask(peer)
    peer.session.requests.give_up(key)
    assert heard(peer, answer(0, key)) == []
    peer.session.expire(LATER)
    assert peer.session.session_events() == []
    assert peer.take() == []


def test_a_caller_with_a_better_clock_ends_a_request_early() -> None:
    peer = welcomed()
    key = ask(peer)
    peer.session.requests.time_out(key)
    assert told(peer.session.session_events()) == [(key, "timeout")]
    assert heard(peer, answer(0, key)) == []


def test_only_the_device_that_was_asked_can_answer() -> None:
    peer = welcomed()
    key = ask(peer, target="device:x")
    assert heard(peer, answer(0, key, source="device:stranger")) == []
    assert peer.take() == []
    assert heard(peer, answer(1, key)) == [(key, "!")]


def test_a_request_of_the_moment_is_gone_with_the_process() -> None:
    peer = welcomed()
    key = ask(peer)
    again = welcomed(Peer(inbox=peer.inbox.crash()))
    assert heard(again, answer(0, key)) == []
    assert again.take() == []


def test_an_answer_without_a_number_counts_as_well() -> None:
    peer = welcomed()
    key = ask(peer)
    casual = Headers(in_reply_to=key, answer=True, source="device:x")
    assert heard(peer, frame(None, "!", headers=casual)) == [(key, "!")]
    assert heard(peer, frame(None, "!", headers=casual)) == []
    assert peer.take() == []


def test_a_refusal_ends_a_request() -> None:
    peer = welcomed()
    key = ask(peer)
    against = Headers(content_type=ERROR_TYPE, in_reply_to=key)
    peer.arrive(frame(0, '{"code":"not_found","detail":"no such device"}', headers=against))
    (session_event,) = peer.session.session_events()
    assert isinstance(session_event, Refused)
    assert peer.session.next_expiry() is None


def test_too_many_requests_are_refused() -> None:
    requests = Requests([], gather_bytes=100)
    for key in range(MOST_PENDING):
        requests.add(key, LATER, Expectation())
    with pytest.raises(Overloaded, match="too many requests wait for their answers"):
        requests.check()


# In order.


def test_answers_of_a_lane_come_in_the_order_of_the_requests() -> None:
    peer = welcomed()
    a, b, c = (ask(peer, lane="l") for _ in range(3))
    assert heard(peer, answer(0, b, "b")) == []
    assert heard(peer, answer(1, a, "a")) == [(a, "a"), (b, "b")]
    assert heard(peer, answer(2, c, "c")) == [(c, "c")]


def test_a_missing_answer_holds_up_the_others_until_its_deadline_and_no_longer() -> None:
    peer = welcomed()
    a = ask(peer, lane="l")
    b = ask(peer, Headers(to="device:x", reply_within=9000), lane="l")
    other = ask(peer, lane="another")
    assert heard(peer, answer(0, b, "b"), answer(1, other)) == [(other, "!")]
    peer.session.expire(LATER - 1)
    assert peer.session.session_events() == []
    peer.session.expire(LATER)
    assert told(peer.session.session_events()) == [(a, "timeout"), (b, "b")]


def test_a_request_that_was_given_up_holds_up_nobody() -> None:
    peer = welcomed()
    a, b = ask(peer, lane="l"), ask(peer, lane="l")
    assert heard(peer, answer(0, b)) == []
    peer.session.requests.give_up(a)
    assert told(peer.session.session_events()) == [(b, "!")]


# For a callback by name.


def by_name(peer: Peer, headers: Headers = ASKS, lane: str = "") -> int:
    return ask(peer, headers, callback="orders", lane=lane)


def outcomes(peer: Peer, now: Micros = NOW) -> list[tuple[int, str]]:
    """Take what there is for callbacks, and be done with it."""
    peer.said()
    taken = []
    for message in peer.ready(now):
        assert message.request is not None
        assert message.request.callback == "orders"
        taken.append((message.request.key, "timeout" if message.timed_out else message.text))
        peer.session.finished(message)
    peer.said()
    return taken


def test_the_answer_for_a_callback_is_a_message_of_the_inbox() -> None:
    peer = welcomed()
    key = by_name(peer)
    peer.arrive(answer(0, key))
    assert outcomes(peer) == [(key, "!")]
    assert peer.inbox.load().requests == []


def test_a_callback_gets_its_answer_in_the_next_life() -> None:
    peer = welcomed()
    key = by_name(peer)
    again = welcomed(Peer(inbox=peer.inbox.crash()))
    again.arrive(answer(0, key))
    again.said()
    once_more = Peer(inbox=again.inbox.crash())
    assert outcomes(once_more) == [(key, "!")]
    last = welcomed(Peer(inbox=once_more.inbox.crash()))
    assert outcomes(last) == []
    last.arrive(answer(1, key, "late"), now=LATER)
    assert outcomes(last, LATER) == []


def test_a_callback_gets_its_timeout_in_the_next_life_and_then_nothing() -> None:
    peer = welcomed()
    key = by_name(peer)
    peer.session.expire(LATER)
    peer.said()
    # Decided and durable: an answer that comes now is too late, whatever the clock says then.
    again = welcomed(Peer(inbox=peer.inbox.crash()))
    again.arrive(answer(0, key))
    assert outcomes(again) == [(key, "timeout")]
    assert outcomes(Peer(inbox=again.inbox.crash())) == []


def test_a_callback_that_did_not_finish_gets_its_outcome_again() -> None:
    peer = welcomed()
    key = by_name(peer)
    peer.arrive(answer(0, key))
    peer.said()
    (message,) = peer.ready()
    assert not message.redelivered
    again = Peer(inbox=peer.inbox.crash())
    again.said()
    (message,) = again.ready()
    assert message.redelivered
    assert message.request is not None


def test_an_answer_that_came_in_time_does_not_expire_before_the_callback_gets_it() -> None:
    peer = welcomed()
    key = by_name(peer)
    headers = Headers(in_reply_to=key, answer=True, source="device:x", deliver_within=1000)
    peer.arrive(frame(0, "!", headers=headers))
    assert outcomes(peer, LATER + SECOND) == [(key, "!")]


def test_callbacks_of_a_lane_keep_their_order_across_lives() -> None:
    peer = welcomed()
    a, b = by_name(peer, lane="l"), by_name(peer, lane="l")
    peer.arrive(answer(0, b, "b"), frame(1, "plain"))
    peer.said()
    (plain,) = peer.ready()
    assert plain.text == "plain"
    peer.session.finished(plain)
    assert outcomes(peer) == []
    again = welcomed(Peer(inbox=peer.inbox.crash()))
    assert outcomes(again) == []
    again.arrive(answer(2, a, "a"))
    assert outcomes(again) == [(a, "a"), (b, "b")]


def test_a_refusal_is_an_outcome_for_a_callback() -> None:
    peer = welcomed()
    by_name(peer)
    against = Headers(content_type=ERROR_TYPE, in_reply_to=by_name(peer))
    peer.arrive(frame(0, '{"code":"not_found","detail":"gone"}', headers=against))
    peer.said()
    (message,) = peer.ready()
    told = refusal(message)
    assert told is not None
    assert told.code == "not_found"


def test_a_request_that_a_gateway_cannot_take_ends_for_its_callback() -> None:
    peer = Peer()
    key = peer.session.requests.ask(
        NOW, Expectation(callback="orders"), headers=ASKS, body=bytes(50_000)
    )
    peer.welcome(max_frame=10_000)
    peer.said()
    assert peer.session.more
    peer.said()
    (message,) = peer.ready()
    assert message.request is not None
    assert message.request.key == key
    assert refusal(message) is not None


def test_an_answer_behind_a_gap_is_no_message_when_nobody_fills_the_gap() -> None:
    peer = welcomed()
    key = by_name(peer)
    peer.arrive(answer(1, key), answer(2, 99))
    peer.said()
    # Another gateway, which knows nothing of the numbering.
    assert peer.welcome(incarnation=b"stranger", epoch=1)
    assert outcomes(peer) == [(key, "!")]
    assert INCARNATION != b"stranger"


def test_the_inbox_on_disk_keeps_requests(tmp_path: Path) -> None:
    rows = [RequestRow(3, 7, "orders", "device:x", "l"), RequestRow(9, 8, "", "topic:t")]
    inbox = SqliteInbox(tmp_path / "inbox")
    inbox.apply(Change(n=1, state=SessionNumbers(), requested=rows[::-1]))
    assert inbox.load().requests == rows
    inbox.apply(Change(n=2, state=SessionNumbers(), settled=[3]))
    inbox.close()
    inbox = SqliteInbox(tmp_path / "inbox")
    assert inbox.load() == InboxContents(requests=rows[1:])
    inbox.close()


# Gathers.

EVERYONE = Headers(to="user:bob", reply_within=1000, gather=True)


def gathering(peer: Peer, most: int | None = None) -> int:
    return ask(peer, EVERYONE, gather=True, most=most, target="user:bob")


def asked(number: int, key: int, *names: str) -> MessageFrame:
    headers = Headers(content_type=ASKED_TYPE, in_reply_to=key, answer=True)
    return MessageFrame(number, KEY + number, None, headers, msgspec.json.encode(names))


def gathered(peer: Peer) -> tuple[dict[str, str], tuple[str, ...] | None, bool] | None:
    peer.said()
    for session_event in peer.session.session_events():
        if isinstance(session_event, Gathered):
            replies = {name: message.text for name, message in session_event.replies.items()}
            return replies, session_event.missing, session_event.complete
    return None


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_a_gather_ends_when_all_who_were_asked_have_answered(order: tuple[int, ...]) -> None:
    peer = welcomed()
    key = gathering(peer)
    frames = [lambda n: asked(n, key, "a", "b")]
    frames.append(lambda n: answer(n, key, "A", source="device:a"))
    frames.append(lambda n: answer(n, key, "B", source="device:b"))
    for number, which in enumerate(order):
        assert gathered(peer) is None
        peer.arrive(frames[which](number))
    assert gathered(peer) == ({"a": "A", "b": "B"}, (), True)


def test_each_member_counts_once() -> None:
    peer = welcomed()
    key = gathering(peer, most=2)
    peer.arrive(answer(0, key, "A", source="device:a"), answer(1, key, "A2", source="device:a"))
    assert gathered(peer) is None
    peer.arrive(answer(2, key, "B", source="device:b"), answer(3, key, "C", source="device:c"))
    assert gathered(peer) == ({"a": "A", "b": "B"}, None, True)
    assert peer.take() == []


def test_at_the_deadline_it_is_known_who_has_not_answered() -> None:
    peer = welcomed()
    key = gathering(peer)
    peer.arrive(asked(0, key, "a", "b", "c"), answer(1, key, "B", source="device:b"))
    peer.session.expire(LATER)
    assert gathered(peer) == ({"b": "B"}, ("a", "c"), False)


def test_who_was_not_asked_does_not_count() -> None:
    peer = welcomed()
    key = gathering(peer)
    peer.arrive(answer(0, key, "S", source="device:s"), answer(1, key, "A", source="device:a"))
    peer.arrive(asked(2, key, "a", "b"), answer(3, key, "T", source="device:t"))
    assert gathered(peer) is None
    peer.session.expire(LATER)
    assert gathered(peer) == ({"a": "A"}, ("b",), False)


def test_nobody_to_ask_is_nobody_to_wait_for() -> None:
    peer = welcomed()
    peer.arrive(asked(0, gathering(peer)))
    assert gathered(peer) == ({}, (), True)


def test_a_list_of_the_asked_that_cannot_be_read_or_comes_from_a_device_is_let_go() -> None:
    peer = welcomed()
    key = gathering(peer)
    headers = Headers(content_type=ASKED_TYPE, in_reply_to=key, answer=True)
    peer.arrive(frame(0, "{", headers=headers))
    forged = Headers(content_type=ASKED_TYPE, in_reply_to=key, answer=True, source="device:a")
    peer.arrive(frame(1, "[]", headers=forged))
    assert gathered(peer) is None
    peer.session.expire(LATER)
    assert gathered(peer) == ({}, None, False)


def test_answers_are_gathered_within_the_memory_of_an_inbox() -> None:
    peer = welcomed(Peer(DeviceTerms(app="shop", name="phone", inbox_bytes=TERMS.window.bytes)))
    key = gathering(peer)
    large = "x" * (TERMS.window.bytes // 2 + 1)
    for number, name in enumerate("abc"):
        peer.arrive(answer(number, key, large, source=f"device:{name}"))
    result = gathered(peer)
    assert result is not None
    assert list(result[0]) == ["a", "b"]


# Against a simple model.


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ask", "answer", "pass", "crash"]),
            st.integers(0, 7),
            st.booleans(),
            st.sampled_from(["", "l", "m"]),
        ),
        max_size=30,
    )
)
def test_every_request_ends_once_and_in_order(steps: list[tuple[str, int, bool, str]]) -> None:
    """Answers come to any request at any time, processes die at any time."""
    peer = welcomed()
    now = NOW
    made: dict[int, tuple[bool, str, Micros]] = {}
    ended: list[tuple[int, str]] = []
    number = 0
    lost: set[int] = set()

    def take() -> None:
        peer.said()
        ended.extend(told(peer.session.session_events()))
        taken = peer.ready(now)
        for message in taken:
            assert message.request is not None, "an answer is never shown as something else"
            ended.append((message.request.key, "timeout" if message.timed_out else message.text))
        peer.session.finished(*taken)
        peer.said()

    for verb, which, named, lane in steps:
        if verb == "ask":
            headers = Headers(to="device:x", reply_within=100 * (which + 1))
            key = ask(peer, headers, at=now, lane=lane, callback="orders" if named else "")
            made[key] = (named, lane, now + 100 * (which + 1) * MILLISECOND)
        elif verb == "answer" and made:
            key = list(made)[which % len(made)]
            peer.arrive(answer(number, key, str(key)), now=now)
            number += 1
        elif verb == "pass":
            now += 50 * MILLISECOND * (which + 1)
            peer.session.expire(now)
        elif verb == "crash":
            take()
            done = {key for key, _ in ended}
            lost |= {key for key, (kept, _, _) in made.items() if not kept and key not in done}
            peer = welcomed(Peer(inbox=peer.inbox.crash()))
        take()
    peer.session.expire(now + 10 * SECOND)
    take()
    keys = [key for key, _ in ended]
    assert len(set(keys)) == len(keys), "each ends once"
    assert set(keys) == set(made) - lost, "each ends"
    for name in ("l", "m"):
        for kept in (True, False):
            in_lane = [key for key in keys if made[key][:2] == (kept, name)]
            assert in_lane == sorted(in_lane), "in the order of the requests"
    for key, outcome in ended:
        assert outcome in ("timeout", str(key))


def test_messages_say_whether_they_stand_for_a_timeout() -> None:
    assert not Message(frame(0), "text/plain").timed_out
