"""Messages stay in the trace that their request names, where the gateway traces."""

from __future__ import annotations

import json

import httpx
import pytest

from lasthop.access.rest import RestSettings, make_app
from lasthop.message import Message
from tests.access.desk import MemoryDesk
from tests.access.knocking import knock

pytestmark = pytest.mark.usefixtures("both_ways_in")

CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000001-00"
REQUEST = {"traceparent": CONTEXT}
HERE = ("traceparent", CONTEXT)


def knocked(desk: MemoryDesk, *, traced: bool = True) -> httpx.AsyncClient:
    desk.register("phone", "news")
    return knock(make_app(desk, RestSettings(open_house=True, traced=traced)))


def stored(desk: MemoryDesk) -> list[Message]:
    keys = {row.message for row in desk.store.all_deliveries()}
    return [message for _, message in sorted(desk.store.messages(keys).items())]


def recorded(desk: MemoryDesk) -> list[str]:
    """What the accepted events say of traces."""
    events = [
        json.loads(line)
        for page in desk.store.events(0, 1 << 20)
        for line in page.lines.splitlines()
    ]
    return [event.get("trace", "") for event in events if event["kind"] == "accepted"]


async def test_every_message_of_a_batch_is_in_its_requests_trace_unless_it_says_another(
    desk: MemoryDesk,
) -> None:
    batch = [
        {"device": "phone", "body": "a"},
        {"device": "phone", "body": "b", "headers": {"Traceparent": OTHER, "x": "y"}},
        {"topic": "news", "body": "c", "headers": {"x": "y"}},
    ]
    async with knocked(desk) as http:
        assert (await http.post("/v1/messages", json=batch, headers=REQUEST)).status_code == 202
    first, second, third = stored(desk)
    assert first.headers == (HERE,)
    assert second.headers == (("Traceparent", OTHER), ("x", "y"))
    assert third.headers == (("x", "y"), HERE)
    assert recorded(desk) == [CONTEXT, OTHER, CONTEXT]


async def test_one_line_is_in_a_trace_too(desk: MemoryDesk) -> None:
    async with knocked(desk) as http:
        assert (await http.post("/news", content=b"x", headers=REQUEST)).status_code == 202
    assert [message.headers for message in stored(desk)] == [(HERE,)]


async def test_what_a_sender_says_goes_before_where_it_comes_from(desk: MemoryDesk) -> None:
    headers = {f"x-{n}": "y" for n in range(32)}
    async with knocked(desk) as http:
        message = {"device": "phone", "headers": headers}
        assert (await http.post("/v1/messages", json=message, headers=REQUEST)).status_code == 202
    (message_stored,) = stored(desk)
    assert dict(message_stored.headers) == headers


async def test_the_same_request_in_another_trace_is_the_same_request(desk: MemoryDesk) -> None:
    async with knocked(desk) as http:
        for trace in (CONTEXT, OTHER):
            answer = await http.post(
                "/v1/messages",
                json={"device": "phone", "body": "a"},
                headers={"traceparent": trace, "idempotency-key": "k"},
            )
            assert answer.is_success
    assert [message.headers for message in stored(desk)] == [(HERE,)]


@pytest.mark.parametrize("traced,trace", [(False, CONTEXT), (True, "nonsense")])
async def test_without_traces_or_sense_in_it_the_header_is_not_there(
    desk: MemoryDesk, traced: bool, trace: str
) -> None:
    async with knocked(desk, traced=traced) as http:
        message = {"device": "phone", "body": "a"}
        await http.post("/v1/messages", json=message, headers={"traceparent": trace})
    assert [message.headers for message in stored(desk)] == [()]
    assert recorded(desk) == [""]
