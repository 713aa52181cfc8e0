"""Publishing: everything or nothing, and durable before the answer."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.clock import DAY, HOUR, SECOND
from lasthop.core.quota import Rate
from lasthop.message import DeliveryMethod, Handling, Message, Reliability, Target, TargetKind
from tests.access.knocking import knock, refusal
from tests.access.live import START, LiveInMemory

pytestmark = pytest.mark.usefixtures("both_ways_in")

NDJSON = {"content-type": "application/x-ndjson"}


def stored(live: LiveInMemory) -> list[Message]:
    """All messages that are durable, in order."""
    keys = {row.message for row in live.store.all_deliveries()}
    return [message for _, message in sorted(live.store.messages(keys).items())]


async def publish_one(http: httpx.AsyncClient, live: LiveInMemory, **fields: Any) -> Message:
    """Publish to `phone`; returns what was stored."""
    answer = await http.post("/v1/messages", json={"device": "phone"} | fields)
    assert answer.status_code == 202, answer.text
    (message,) = stored(live)
    assert answer.json() == {"id": message.id}
    return message


@pytest.fixture(autouse=True)
def phone(live: LiveInMemory) -> None:
    live.register("phone", "news", user="alice")


async def test_an_accepted_message_is_durable_when_the_answer_comes(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    message = await publish_one(http, live, body="hello")
    assert message.body == b"hello"
    assert message.target == Target(TargetKind.DEVICE, "phone")
    assert message.content_type == "text/plain; charset=utf-8"
    assert message.app == "default"
    assert message.source == "publisher:anonymous"


@pytest.mark.parametrize(
    "address, target",
    [
        ({"to": "device:phone"}, Target(TargetKind.DEVICE, "phone")),
        ({"to": "user:alice"}, Target(TargetKind.USER, "alice")),
        ({"to": "topic:news"}, Target(TargetKind.TOPIC, "news")),
        ({"to": "app:"}, Target(TargetKind.APP, "")),
        ({"user": "alice"}, Target(TargetKind.USER, "alice")),
        ({"topic": "news"}, Target(TargetKind.TOPIC, "news")),
    ],
)
async def test_every_form_of_address_reaches_the_device(
    http: httpx.AsyncClient, live: LiveInMemory, address: dict[str, str], target: Target
) -> None:
    answer = await http.post("/v1/messages", json=address)
    assert answer.status_code == 202
    (message,) = stored(live)
    assert message.target == target


@pytest.mark.parametrize(
    "fields, content_type, body",
    [
        ({"body": "grüße"}, "text/plain; charset=utf-8", "grüße".encode()),
        ({"body_base64": b64encode(b"\0\xff").decode()}, "application/octet-stream", b"\0\xff"),
        ({"json": {"a": [1, None]}}, "application/json", b'{"a":[1,null]}'),
        ({"json": None}, "application/json", b"null"),
        ({"json": 1, "content_type": "application/vnd.x+json"}, "application/vnd.x+json", b"1"),
        (
            {"body": "<p>", "content_type": "text/html; charset=utf-8"},
            "text/html; charset=utf-8",
            b"<p>",
        ),
        ({}, "text/plain; charset=utf-8", b""),
    ],
)
async def test_a_body_is_text_bytes_or_json(
    http: httpx.AsyncClient,
    live: LiveInMemory,
    fields: dict[str, Any],
    content_type: str,
    body: bytes,
) -> None:
    message = await publish_one(http, live, **fields)
    assert (message.content_type, message.body) == (content_type, body)


async def test_all_fields_arrive_in_the_message(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    message = await publish_one(
        http,
        live,
        title="T",
        priority=9,
        rank=2.5,
        reliability="best-effort",
        method="unconfirmed",
        handling="silent",
        replace_key="k",
        headers={"x-a": "ü"},
        queue="q",
    )
    assert message.title == "T"
    assert message.priority == 9
    assert message.rank == 2.5
    assert message.reliability is Reliability.BEST_EFFORT
    assert message.method is DeliveryMethod.UNCONFIRMED
    assert message.handling is Handling.SILENT
    assert message.replace_key == "k"
    assert message.headers == (("x-a", "ü"),)
    assert message.queue == "q"


@pytest.mark.parametrize(
    "given, after",
    [
        ({"deliver_after": 1_750_000_060}, 60 * SECOND),
        ({"deliver_after": 1_750_000_000.5}, SECOND // 2),
        ({"deliver_after": "2025-06-15T15:06:41Z"}, SECOND),
        ({"deliver_after": "2025-06-15T17:06:41.5+02:00"}, SECOND * 3 // 2),
        ({"delay": 5}, 5 * SECOND),
        ({"delay": "90s"}, 90 * SECOND),
        ({"delay": "1h30m"}, 90 * 60 * SECOND),
        ({"delay": "2 d"}, 2 * DAY),
        ({"delay": "250ms"}, SECOND // 4),
        ({"delay": "7"}, 7 * SECOND),
    ],
)
async def test_times_are_absolute_or_count_from_now(
    http: httpx.AsyncClient, live: LiveInMemory, given: dict[str, Any], after: int
) -> None:
    message = await publish_one(http, live, **given)
    assert message.deliver_after == START + after


async def test_deadlines_for_delivery_and_reply(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    message = await publish_one(http, live, ttl="2h", reply_within=30)
    assert message.deliver_before == START + 2 * HOUR
    assert message.reply_before == START + 30 * SECOND


@pytest.mark.parametrize("given", [90, "90", "90s", "1m30s"])
async def test_a_tolerated_delay_is_a_duration(
    http: httpx.AsyncClient, live: LiveInMemory, given: float | str
) -> None:
    message = await publish_one(http, live, delay_tolerance=given)
    assert message.delay_tolerance == 90 * SECOND


@pytest.mark.parametrize(
    "method, reliability",
    [
        ("notspecified", Reliability.EXACTLY_ONCE),
        ("unconfirmed", Reliability.BEST_EFFORT),
        ("oneshot", Reliability.BEST_EFFORT),
        ("confirmedwithresponse", Reliability.EXACTLY_ONCE),
    ],
)
async def test_a_method_brings_its_reliability(
    http: httpx.AsyncClient, live: LiveInMemory, method: str, reliability: Reliability
) -> None:
    assert (await publish_one(http, live, method=method)).reliability is reliability


BAD: list[tuple[dict[str, Any], int, str | None, str]] = [
    ({"device": None}, 400, "to", "needs one target"),
    ({"topic": "news"}, 400, "topic", "needs one target"),
    ({"to": "phone", "device": None}, 400, "to", "a target is device:NAME"),
    ({"to": "publisher:x", "device": None}, 400, "to", "a target is device:NAME"),
    ({"topic": "a b", "device": None}, 400, "topic", "words separated by dots"),
    ({"topic": "ü" * 101, "device": None}, 413, "topic", "topic too long"),
    ({"to": "x" * 251, "device": None}, 400, "to", "length <= 250"),
    ({"to": 7, "device": None}, 400, "to", "got `int`"),
    ({"body": "a", "json": 1}, 400, "json", "give one of"),
    ({"body": "a", "body_base64": "YQ=="}, 400, "body_base64", "give one of"),
    ({"body_base64": "not base64"}, 400, "body_base64", "not base64"),
    ({"body_base64": "ü"}, 400, "body_base64", "not base64"),
    ({"body": 5}, 400, "body", "got `int`"),
    ({"content_type": "text"}, 400, "content_type", "type/subtype"),
    ({"content_type": "text/plain\r\nx: y"}, 400, "content_type", "type/subtype"),
    ({"title": "x" * 251}, 400, "title", "length <= 250"),
    ({"priority": 10}, 400, "priority", "<= 9"),
    ({"priority": -1}, 400, "priority", ">= 0"),
    ({"priority": "high"}, 400, "priority", "got `str`"),
    ({"rank": "x"}, 400, "rank", "got `str`"),
    ({"delay": "soon"}, 400, "delay", "a duration must be a number of seconds"),
    ({"delay": -1}, 400, "delay", "between 0 and ten years"),
    ({"delay": "99999999d"}, 400, "delay", "between 0 and ten years"),
    ({"delay": 1e300}, 400, "delay", "between 0 and ten years"),
    ({"delay": 1, "deliver_after": 2_000_000_000}, 400, "delay", "mean the same"),
    ({"ttl": 1, "deliver_before": 2_000_000_000}, 400, "ttl", "mean the same"),
    ({"deliver_after": "tomorrow"}, 400, "deliver_after", "RFC 3339"),
    ({"deliver_after": "2030-01-01T00:00:00"}, 400, "deliver_after", "RFC 3339"),
    ({"deliver_after": -5}, 400, "deliver_after", "between the years"),
    ({"deliver_after": 1e18}, 400, "deliver_after", "between the years"),
    ({"deliver_after": "0001-01-01T00:00:00Z"}, 400, "deliver_after", "between the years"),
    ({"deliver_before": 1_700_000_000}, 422, None, "has passed"),
    ({"ttl": 0}, 422, None, "has passed"),
    ({"delay": "2h", "ttl": "1h"}, 400, None, "must come before"),
    ({"delay_tolerance": "some"}, 400, "delay_tolerance", "a duration must be a number of seconds"),
    ({"delay_tolerance": -1}, 400, "delay_tolerance", "between 0 and ten years"),
    ({"delay_tolerance": "32d"}, 400, "delay_tolerance", "a delay must be between 0 and 31 days"),
    ({"reliability": "twice"}, 400, "reliability", "Invalid enum value"),
    ({"method": "pigeon"}, 400, "method", "Invalid enum value"),
    ({"method": "unconfirmed", "reliability": "exactly-once"}, 400, "method", "contradicts"),
    ({"method": "confirmed", "reliability": "best-effort"}, 400, "method", "contradicts"),
    ({"handling": "loud"}, 400, "handling", "Invalid enum value"),
    ({"replace_key": ""}, 400, "replace_key", "length >= 1"),
    ({"queue": "x" * 129}, 400, "queue", "length <= 128"),
    ({"reply_within": "x"}, 400, "reply_within", "a duration"),
    ({"headers": {"a": 1}}, 400, "headers[...]", "got `int`"),
    ({"headers": {"a b": "1"}}, 400, "headers.a b", "a name must have"),
    ({"headers": {"a": "x\ny"}}, 400, "headers.a", "a value must have"),
    ({"headers": {"a": "x" * 1025}}, 400, "headers.a", "a value must have"),
    ({"headers": {str(i): "" for i in range(33)}}, 400, "headers", "length <= 32"),
    ({"priorty": 3}, 400, "priorty", "unknown field"),
    ({"device": "ghost"}, 404, None, "no such device"),
    ({"device": None, "user": "nobody"}, 404, None, "no device of this user"),
    ({"body": "x" * ((1 << 20) + 1)}, 413, None, "body too large"),
    ({"body": "x" * (1 << 20), "title": "t"}, 413, None, "title and headers"),
]


@pytest.mark.parametrize("fields, status, field, detail", BAD)
async def test_a_bad_message_is_refused_with_the_field_at_fault(
    http: httpx.AsyncClient,
    live: LiveInMemory,
    fields: dict[str, Any],
    status: int,
    field: str | None,
    detail: str,
) -> None:
    answer = await http.post("/v1/messages", json={"device": "phone"} | fields)
    assert refusal(answer)[::2] == (status, field), answer.text
    assert detail in answer.json()["error"]["detail"]
    assert stored(live) == []


@pytest.mark.parametrize("fields, status, field, detail", BAD[::4])
@pytest.mark.parametrize("lines", [True, False])
async def test_a_batch_with_one_bad_message_leaves_nothing_and_names_it(
    http: httpx.AsyncClient,
    live: LiveInMemory,
    fields: dict[str, Any],
    status: int,
    field: str | None,
    detail: str,
    lines: bool,
) -> None:
    good = {"device": "phone", "body": "x"}
    answer = await send_batch(http, [good, good, {"device": "phone"} | fields, good], lines)
    named = "[2]" if field is None else f"[2].{field}"
    assert refusal(answer)[::2] == (status, named), answer.text
    assert "message 2: " in answer.json()["error"]["detail"]
    assert stored(live) == []


async def send_batch(
    http: httpx.AsyncClient, batch: list[dict[str, Any]], lines: bool, **headers: str
) -> httpx.Response:
    if lines:
        content = b"\n".join(json.dumps(item).encode() for item in batch)
        return await http.post("/v1/messages", content=content, headers=NDJSON | headers)
    return await http.post("/v1/messages", json=batch, headers=headers)


@pytest.mark.parametrize("lines", [True, False])
async def test_a_batch_is_one_call_and_its_ids_keep_its_order(
    http: httpx.AsyncClient, live: LiveInMemory, lines: bool
) -> None:
    batch = [{"device": "phone", "body": str(i)} for i in range(10)]
    before = live.calls
    answer = await send_batch(http, batch, lines)
    assert answer.status_code == 202
    assert live.calls == before + 1
    messages = stored(live)
    assert [m.body for m in messages] == [str(i).encode() for i in range(10)]
    assert answer.json() == {"ids": [m.id for m in messages]}


@given(good=st.lists(st.sampled_from(["device", "topic", "user"]), max_size=6), data=st.data())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_batch_is_accepted_completely_or_not_at_all(good: list[str], data: st.DataObject) -> None:
    names = {"device": "phone", "topic": "news", "user": "alice"}
    batch: list[dict[str, Any]] = [{kind: names[kind], "body": "x"} for kind in good]
    bad = data.draw(st.sampled_from([None, *(fields for fields, *_ in BAD[:-2])]))
    if bad is not None:
        at = data.draw(st.integers(0, len(batch)))
        batch.insert(at, {"device": "phone"} | bad)

    async def run() -> None:
        live = LiveInMemory()
        live.register("phone", "news", user="alice")
        async with knock(make_app(live, RestSettings(open_house=True))) as http:
            answer = await send_batch(http, batch, data.draw(st.booleans()))
        accepted = answer.status_code == 202
        assert accepted == (bad is None and bool(batch))
        assert len(stored(live)) == (len(batch) if accepted else 0)

    anyio.run(run)


@pytest.mark.parametrize(
    "content, content_type, status, field, detail",
    [
        (b"", "application/json", 400, None, "truncated"),
        (b"{", "application/json", 400, None, "truncated"),
        (b"nonsense", "application/json", 400, None, "malformed"),
        (b"7", "application/json", 400, None, "got `int`"),
        (b"[]", "application/json", 400, None, "no message in the request"),
        (b"\n\n", "application/x-ndjson", 400, None, "no message in the request"),
        (b'{"device":"phone"}\n{', "application/x-ndjson", 400, None, "truncated"),
        (b'{"title":"\xff"}', "application/json", 400, None, "cannot be read"),
        (b'{"json":' + b"[" * 100_000, "application/json", 400, None, "nested too deeply"),
        (b"<x/>", "application/xml", 415, "Content-Type", "application/x-ndjson"),
        (b'{"device":"phone"}', "application/problem+json", 202, None, ""),
        (b' \n{"device":"phone"}', "", 202, None, ""),
        (b'{"device":"phone"}', "application/x-www-form-urlencoded", 202, None, ""),
    ],
)
async def test_only_json_is_read(
    http: httpx.AsyncClient,
    content: bytes,
    content_type: str,
    status: int,
    field: str | None,
    detail: str,
) -> None:
    headers = {"content-type": content_type} if content_type else {}
    answer = await http.post("/v1/messages", content=content, headers=headers)
    assert answer.status_code == status
    if status != 202:
        assert refusal(answer)[2] == field
        assert detail in answer.json()["error"]["detail"]


async def test_compressed_bodies_are_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/messages", content=b"x", headers={"content-encoding": "gzip"})
    assert refusal(answer) == (415, "unsupported_media", "Content-Encoding")


async def test_a_request_above_its_size_is_refused_while_it_comes_in(live: LiveInMemory) -> None:
    door = make_app(live, RestSettings(open_house=True, max_body=100))

    async def chunks() -> Any:
        for _ in range(3):
            yield b"x" * 60
        pytest.fail("it was read to the end")

    async with knock(door) as http:
        declared = await http.post("/v1/messages", content=b"x" * 101)
        streamed = await http.post("/v1/messages", content=chunks())
    assert refusal(declared) == refusal(streamed) == (413, "too_large", None)
    assert declared.headers["connection"] == "close"
    assert door.refused == {"too_large": 2}


async def test_no_more_is_held_in_memory_than_agreed(live: LiveInMemory) -> None:
    door = make_app(live, RestSettings(open_house=True, max_held=100))
    async with knock(door) as http:
        answer = await http.post("/v1/messages", content=b"x" * 101)
        assert refusal(answer) == (503, "overloaded", None)
        assert answer.headers["retry-after"] == "1"
        for _ in range(20):  # What is done with is let go, well or badly done.
            assert (await http.post("/v1/messages", json={"device": "phone"})).status_code == 202
            assert (await http.post("/v1/messages", content=b"x" * 90)).status_code == 400


async def test_a_request_has_a_limited_number_of_messages(live: LiveInMemory) -> None:
    door = make_app(live, RestSettings(open_house=True, max_messages=3))
    async with knock(door) as http:
        three = await send_batch(http, [{"device": "phone"}] * 3, lines=True)
        four = await send_batch(http, [{"device": "phone"}] * 4, lines=True)
    assert three.status_code == 202
    assert refusal(four) == (413, "too_large", None)


async def test_a_publisher_above_its_quota_is_told_when_to_come_back(live: LiveInMemory) -> None:
    door = make_app(live, RestSettings(open_house=True, messages=Rate(2, 4)))
    async with knock(door) as http:
        batch = [{"device": "phone"}] * 4
        assert (await send_batch(http, batch, lines=False)).status_code == 202
        answer = await http.post("/v1/messages", json={"device": "phone"})
        assert refusal(answer) == (429, "quota_exceeded", None)
        assert answer.headers["retry-after"] == "1"
        refused = await send_batch(http, batch, lines=False)
        assert refused.headers["retry-after"] == "2"
        live.pass_time(2)
        assert (await send_batch(http, batch, lines=False)).status_code == 202


async def test_the_quota_counts_bytes_too(live: LiveInMemory) -> None:
    door = make_app(live, RestSettings(open_house=True, bytes=Rate(10, 100)))
    async with knock(door) as http:
        first = await http.post("/v1/messages", json={"device": "phone", "body": "x" * 100})
        second = await http.post("/v1/messages", json={"device": "phone"})
    assert first.status_code == 202
    assert second.status_code == 429
    assert int(second.headers["retry-after"]) >= 5


async def test_a_gateway_that_takes_nothing_in_says_so(
    http: httpx.AsyncClient, live: LiveInMemory, door: Door
) -> None:
    live.full = True
    answer = await http.post("/v1/messages", json={"device": "phone"})
    assert refusal(answer) == (503, "overloaded", None)
    assert answer.headers["retry-after"] == "1"
    assert door.refused == {"overloaded": 1}
