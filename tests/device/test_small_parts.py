"""Keys, retries, drafts, messages and clocks: the parts that need no peer.

About `device/clock.py`, `device/compose.py`, `device/keys.py`, `device/message.py` and
`device/retry.py`.
"""

from __future__ import annotations

import pytest

from lasthop.clock import SECOND
from lasthop.device import compose
from lasthop.device.clock import DeviceClock
from lasthop.device.keys import KeyMemory
from lasthop.device.message import Message
from lasthop.device.retry import Backoff, ChannelReplaced, verdict
from lasthop.errors import (
    Expired,
    InvalidRequest,
    LasthopError,
    NotFound,
    Unauthorized,
    UnsupportedFrame,
)
from lasthop.message import Handling, Reliability, key_time
from lasthop.wire.hop.frames import Close, CloseCode, Headers, MessageFrame, Operation
from tests.device.peer import KEY, NOW, frame

# Keys.


def test_at_least_so_many_keys_are_remembered_and_at_most_twice_as_many() -> None:
    memory = KeyMemory(10)
    for key in range(100):
        memory.add(key)
        assert len(memory) <= 20
        assert all(recent in memory for recent in range(max(0, key - 9), key + 1))
    assert 0 not in memory
    assert memory.generation == 10
    assert memory.take_added() == list(range(100))
    assert memory.take_added() == []


def test_a_memory_of_keys_is_taken_up_again() -> None:
    memory = KeyMemory(10, generation=4, old=[1, 2], young=[3])
    assert all(key in memory for key in (1, 2, 3))
    assert memory.generation == 4


# Retries.


def test_attempts_are_made_at_longer_and_longer_intervals() -> None:
    backoff = Backoff(first=1, longest=10, random=lambda: 0.0)
    assert [backoff.delay() for _ in range(6)] == [0.5, 1, 2, 4, 5, 5]
    backoff.succeeded()
    assert backoff.delay() == 0.5


def test_chance_spreads_devices_over_half_of_the_interval() -> None:
    assert Backoff(first=2, random=lambda: 0.0).delay() == 1
    assert Backoff(first=2, random=lambda: 0.999).delay() == pytest.approx(2, abs=0.01)


def test_the_gateways_wish_comes_on_top() -> None:
    backoff = Backoff(first=1, random=lambda: 0.0)
    assert backoff.delay(Close(CloseCode.OVERLOADED, 10_000, "full")) == 10.5


def test_a_thousand_failures_do_not_overflow() -> None:
    backoff = Backoff(first=1, longest=60, random=lambda: 0.0)
    assert [backoff.delay() for _ in range(1000)][-1] == 30


@pytest.mark.parametrize(
    "code, error",
    [
        (CloseCode.UNSUPPORTED, UnsupportedFrame),
        (CloseCode.UNAUTHORIZED, Unauthorized),
        (CloseCode.UNKNOWN_DEVICE, NotFound),
        (CloseCode.REPLACED, ChannelReplaced),
    ],
)
def test_some_closes_are_final(code: CloseCode, error: type[LasthopError]) -> None:
    found = verdict(Close(code, 0, "because"), welcomed=False)
    assert type(found) is error
    assert str(found) == "because"
    assert str(verdict(Close(code), welcomed=False)) == "no reason given"


def test_a_gateway_that_let_a_device_in_speaks_its_version() -> None:
    assert verdict(Close(CloseCode.UNSUPPORTED, 0, "an unknown frame"), welcomed=True) is None
    removed = verdict(Close(CloseCode.UNKNOWN_DEVICE, 0, "it was removed"), welcomed=True)
    assert type(removed) is NotFound


@pytest.mark.parametrize(
    "close",
    [
        None,
        Close(99, 0, "from the future"),
        *(
            Close(code)
            for code in CloseCode
            if code
            not in (
                CloseCode.UNSUPPORTED,
                CloseCode.UNAUTHORIZED,
                CloseCode.UNKNOWN_DEVICE,
                CloseCode.REPLACED,
            )
        ),
    ],
)
def test_after_any_other_end_the_device_dials_again(close: Close | None) -> None:
    assert verdict(close, welcomed=False) is None
    assert verdict(close, welcomed=True) is None


# Drafts.


def test_a_text_and_bytes_have_their_own_types() -> None:
    assert compose.message("device:x", "text").headers.content_type == "text/plain; charset=utf-8"
    assert compose.message("device:x", b"\x00").headers.content_type == "application/octet-stream"
    json = compose.message("device:x", "{}", content_type="application/json")
    assert json.headers.content_type == "application/json"


def test_everything_that_can_be_said_of_a_message_is_said() -> None:
    draft = compose.message(
        "user:alice",
        "body",
        title="T",
        priority=9,
        rank=1.5,
        expires_in=2.5,
        delay_tolerance=60,
        immediate=True,
        reliability=Reliability.AT_LEAST_ONCE_DELIVERY,
        handling=Handling.SILENT,
        queue="q",
        headers={"a": "b"},
        reply_within=3 * SECOND,
    )
    assert draft.expects
    assert draft.topic is None
    assert draft.headers == Headers(
        content_type="text/plain; charset=utf-8",
        to="user:alice",
        title="T",
        priority=9,
        rank=1.5,
        deliver_within=2500,
        tolerance=60_000,
        immediate=True,
        reliability=Reliability.AT_LEAST_ONCE_DELIVERY,
        handling=Handling.SILENT,
        queue="q",
        extra=(("a", "b"),),
        reply_within=3000,
    )


def test_a_topic_travels_as_a_topic() -> None:
    draft = compose.message("topic:news", "body")
    assert (draft.topic, draft.headers.to) == ("news", None)


@pytest.mark.parametrize("target", ["", "phone", "planet:mars", "publisher:x", ":x"])
def test_a_target_has_a_kind(target: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        compose.message(target, "body")
    kinds = "device:NAME, user:NAME, topic:NAME, service:NAME, group:NAME, queue:NAME or app:"
    assert str(caught.value) == f"a target is {kinds} (target={target!r})"


@pytest.mark.parametrize("priority", [-1, 10])
def test_a_priority_has_one_digit(priority: int) -> None:
    with pytest.raises(InvalidRequest, match="a priority must be 0 to 9"):
        compose.message("device:x", "body", priority=priority)


@pytest.mark.parametrize("seconds", [-1, 31 * 86_400 + 1, float("nan")])
def test_a_tolerated_delay_is_at_most_a_month(seconds: float) -> None:
    with pytest.raises(InvalidRequest, match="delay_tolerance must be 0 to 31 days, in seconds"):
        compose.message("device:x", "body", delay_tolerance=seconds)


def test_a_reply_finds_its_way_back() -> None:
    asked = message(headers=Headers(source="device:tablet", reply_within=1000, correlation=77))
    draft = compose.reply(asked, "answer", NOW)
    assert draft.headers == Headers(
        content_type="text/plain; charset=utf-8",
        operation=Operation.REPLY,
        in_reply_to=KEY,
        to="device:tablet",
        correlation=77,
        deliver_within=1000,
    )


def test_a_reply_that_comes_too_late_is_not_sent() -> None:
    asked = message(headers=Headers(reply_within=1000))
    with pytest.raises(Expired, match="the sender no longer waits for an answer"):
        compose.reply(asked, "answer", NOW + SECOND)


def test_a_message_without_a_key_cannot_be_answered() -> None:
    asked = Message(MessageFrame(0, None), "text/plain")
    with pytest.raises(InvalidRequest, match="a message without a key cannot be answered"):
        compose.reply(asked, "answer", NOW)


def test_reads_name_the_message_and_its_topic() -> None:
    read = message()
    draft = compose.read(read=read, queue_size=4)
    assert draft.body == b'{"count":1,"queue_size":4,"message":%d}' % KEY
    assert compose.read(topic="news", count=3).topic == "news"


# Messages.


def message(*, headers: Headers | None = None) -> Message:
    return Message(frame(0, "body", key=KEY, headers=headers), "text/plain", 0, 0)


def test_a_plain_message_has_defaults_for_everything() -> None:
    plain = message()
    assert plain.id == f"{KEY:016x}"
    assert plain.published_at == key_time(KEY)
    assert (plain.text, plain.body, plain.content_type) == ("body", b"body", "text/plain")
    assert (plain.topic, plain.title, plain.source, plain.queue) == (None, None, None, None)
    assert (plain.priority, plain.rank, plain.wants_reply) == (4, 0.0, False)
    assert (plain.in_reply_to, plain.reply_before, plain.extra) == (None, None, {})
    assert plain.handling is Handling.FOREGROUND
    assert plain.reliability is Reliability.EXACTLY_ONCE


def test_a_message_says_what_its_headers_say() -> None:
    told = message(
        headers=Headers(
            content_type="text/html",
            title="T",
            rank=2.0,
            priority=1,
            source="device:x",
            queue="q",
            reply_within=500,
            in_reply_to=9,
            extra=(("a", "b"),),
            handling=Handling.NOTIFY,
            reliability=Reliability.BEST_EFFORT,
        )
    )
    assert (told.content_type, told.title, told.rank, told.priority) == ("text/html", "T", 2.0, 1)
    assert (told.source, told.queue, told.in_reply_to) == ("device:x", "q", 9)
    assert told.reply_before == key_time(KEY) + SECOND // 2
    assert told.wants_reply
    assert told.extra == {"a": "b"}
    assert told.handling is Handling.NOTIFY
    assert told.reliability is Reliability.BEST_EFFORT


def test_time_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5_000_000, 3_000_000, 9_000_000])
    monkeypatch.setattr("time.time_ns", lambda: next(times))
    clock = DeviceClock()
    assert [clock.now(), clock.now(), clock.now()] == [5000, 5000, 9000]
