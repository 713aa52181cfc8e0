"""Messages stay in the trace that their request names, where the gateway traces.

About `wire/tracecontext.py` and `access/rest/publish.py`.
"""

from __future__ import annotations

import json

import httpx
import pytest

from lasthop.access.rest import RestSettings, make_app
from lasthop.message import Message
from tests.access.knocking import knock
from tests.access.live import LiveInMemory

pytestmark = pytest.mark.usefixtures("both_ways_in")

CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000001-00"
REQUEST = {"traceparent": CONTEXT}
HERE = ("traceparent", CONTEXT)


def knocked(live: LiveInMemory, *, traced: bool = True) -> httpx.AsyncClient:
    live.register("phone", "news")
    return knock(make_app(live, RestSettings(open_house=True, traced=traced)))


def stored(live: LiveInMemory) -> list[Message]:
    keys = {row.message for row in live.store.all_deliveries()}
    return [message for _, message in sorted(live.store.messages(keys).items())]


def recorded(live: LiveInMemory) -> list[str]:
    """What the accepted events say of traces."""
    events = [
        json.loads(line)
        for page in live.store.events(0, 1 << 20)
        for line in page.lines.splitlines()
    ]
    return [event.get("trace", "") for event in events if event["kind"] == "accepted"]


async def test_every_message_of_a_batch_is_in_its_requests_trace_unless_it_says_another(
    live: LiveInMemory,
) -> None:
    batch = [
        {"device": "phone", "body": "a"},
        {"device": "phone", "body": "b", "headers": {"Traceparent": OTHER, "x": "y"}},
        {"topic": "news", "body": "c", "headers": {"x": "y"}},
    ]
    async with knocked(live) as http:
        assert (await http.post("/v1/messages", json=batch, headers=REQUEST)).status_code == 202
    first, second, third = stored(live)
    assert first.headers == (HERE,)
    assert second.headers == (("Traceparent", OTHER), ("x", "y"))
    assert third.headers == (("x", "y"), HERE)
    assert recorded(live) == [CONTEXT, OTHER, CONTEXT]


async def test_one_line_is_in_a_trace_too(live: LiveInMemory) -> None:
    async with knocked(live) as http:
        assert (await http.post("/news", content=b"x", headers=REQUEST)).status_code == 200
    assert [message.headers for message in stored(live)] == [(HERE,)]


async def test_what_a_sender_says_goes_before_where_it_comes_from(live: LiveInMemory) -> None:
    headers = {f"x-{n}": "y" for n in range(32)}
    async with knocked(live) as http:
        message = {"device": "phone", "headers": headers}
        assert (await http.post("/v1/messages", json=message, headers=REQUEST)).status_code == 202
    (message_stored,) = stored(live)
    assert dict(message_stored.headers) == headers


async def test_the_same_request_in_another_trace_is_the_same_request(live: LiveInMemory) -> None:
    async with knocked(live) as http:
        for trace in (CONTEXT, OTHER):
            answer = await http.post(
                "/v1/messages",
                json={"device": "phone", "body": "a"},
                headers={"traceparent": trace, "idempotency-key": "k"},
            )
            assert answer.is_success
    assert [message.headers for message in stored(live)] == [(HERE,)]


@pytest.mark.parametrize("traced,trace", [(False, CONTEXT), (True, "nonsense")])
async def test_without_traces_or_sense_in_it_the_header_is_not_there(
    live: LiveInMemory, traced: bool, trace: str
) -> None:
    async with knocked(live, traced=traced) as http:
        message = {"device": "phone", "body": "a"}
        await http.post("/v1/messages", json=message, headers={"traceparent": trace})
    assert [message.headers for message in stored(live)] == [()]
    assert recorded(live) == [""]
