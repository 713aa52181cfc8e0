"""How much topics remember, over REST; about `lasthop.access.rest.topic_memory`."""

from __future__ import annotations

import httpx
import pytest

from tests.access.knocking import refusal
from tests.access.live import LiveInMemory


async def test_bounds_are_set_shown_and_removed(http: httpx.AsyncClient) -> None:
    for path in ("/v1/topics/news/history", "/v1/apps/default/history"):
        usual = (await http.get(path)).json()
        assert (usual["age"], usual["messages"]) == (43_200.0, 1000)
        answer = await http.put(path, json={"messages": 2, "age": 60})
        assert (answer.status_code, answer.json()["messages"]) == (200, 2)
        await http.post("/v1/messages", json={"topic": "other", "body": "x"})
        assert (await http.get(path)).json()["age"] == 60
        assert (await http.delete(path)).json() == usual


async def test_what_is_there_is_told(http: httpx.AsyncClient) -> None:
    for delay in (None, None, "1h"):
        body = {"topic": "news", "body": "four"} | ({"delay": delay} if delay else {})
        answer = await http.post("/v1/messages", json=body)
        assert (answer.json()["subscriptions"], answer.json()["kept"]) == (0, True)
    told = (await http.get("/v1/topics/news/history")).json()
    assert (told["remembered"], told["remembered_bytes"], told["scheduled"]) == (2, 8, 1)


async def test_a_batch_tells_of_each_message(http: httpx.AsyncClient, live: LiveInMemory) -> None:
    live.register("phone")
    batch = [{"topic": "news", "body": "x"}, {"device": "phone", "body": "x"}]
    answer = (await http.post("/v1/messages", json=batch)).json()
    assert answer["topics"] == [{"subscriptions": 0, "kept": True}, None]


async def test_a_subscription_begins_where_it_says(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    live.register("phone")
    ids = []
    for n in range(4):
        answer = await http.post("/v1/messages", json={"topic": "news", "body": f"{n}"})
        ids.append(answer.json()["id"])
    path = "/v1/devices/phone/subscriptions/news"
    assert (await http.put(path, params={"since": ids[1]})).json()["changed"]
    await live.durable()
    rows = list(live.store.all_deliveries())
    assert [f"{row.message:016x}" for row in rows] == [i[:16] for i in ids[2:]]


@pytest.mark.parametrize(
    "query, field",
    [({"since": "soon"}, "since"), ({"last": "-1"}, "last"), ({"since": "all", "last": "1"}, None)],
)
async def test_a_wrong_beginning_is_refused(
    http: httpx.AsyncClient, live: LiveInMemory, query: dict[str, str], field: str | None
) -> None:
    live.register("phone")
    answer = await http.put("/v1/devices/phone/subscriptions/news", params=query)
    assert answer.status_code == 400
    if field is not None:
        assert refusal(answer)[2] == field
