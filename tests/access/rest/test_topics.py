"""Topics, terms, rules and ranks over REST."""

from __future__ import annotations

import httpx
import pytest

from lasthop.core.lifecycle import State
from lasthop.wire.hop.frames import Headers, Operation
from tests.access.knocking import refusal
from tests.access.live import LiveInMemory

NEWS = "/v1/devices/phone/subscriptions/news"


@pytest.fixture(autouse=True)
def phone(live: LiveInMemory) -> None:
    live.register("phone")


async def test_a_subscription_has_terms(http: httpx.AsyncClient) -> None:
    terms = {
        "max": 3,
        "threshold": 2.5,
        "mode": "on-line",
        "quiet": {"start": "22:00", "end": "07:00"},
    }
    answer = await http.put(NEWS, json=terms)
    assert answer.json() == {
        "device": "phone",
        "topic": "news",
        "subscribed": True,
        "changed": True,
    }
    assert not (await http.put(NEWS, json=terms)).json()["changed"]
    # Without a body the subscription is as it was.
    assert not (await http.put(NEWS)).json()["changed"]
    await http.put("/v1/devices/phone/subscriptions/plain")
    for _ in range(2):
        await http.post("/v1/messages", json={"topic": "news", "rank": 3, "body": "x"})
    listed = (await http.get("/v1/devices/phone/subscriptions")).json()["subscriptions"]
    assert listed == [
        {"topic": "news", "terms": terms, "policy": "predictive", "waiting": 2},
        {"topic": "plain"},
    ]


@pytest.mark.parametrize(
    "terms, field",
    [
        ({"max": 0}, "max"),
        ({"mode": "sometimes"}, "mode"),
        ({"policy": "oracle"}, "policy"),
        ({"threshold": "high"}, "threshold"),
        ({"times": ["25:00"]}, "times[0]"),
        ({"unknown": 1}, "unknown"),
    ],
)
async def test_bad_terms_are_refused(
    http: httpx.AsyncClient, terms: dict[str, object], field: str
) -> None:
    status, code, named = refusal(await http.put(NEWS, json=terms))
    assert (status, code) == (400, "invalid_request")
    assert named == field
    assert (await http.get("/v1/devices/phone/subscriptions")).json()["subscriptions"] == []


async def test_a_message_changes_its_rank(http: httpx.AsyncClient, live: LiveInMemory) -> None:
    await http.put(NEWS, json={"threshold": 2})
    id_ = (await http.post("/v1/messages", json={"topic": "news", "rank": 3})).json()["id"]
    answer = await http.patch(f"/v1/messages/{id_}", json={"rank": 1.5})
    assert answer.json() == {"id": id_, "rank": 1.5, "open": 1}
    key = int(id_[:16], 16)
    assert live.store.messages([key])[key].rank == 1.5
    assert State(live.store.deliveries(key)[0].state) is State.PENDING
    assert refusal(await http.patch(f"/v1/messages/{'0' * 32}", json={"rank": 1}))[0] == 404
    assert refusal(await http.patch(f"/v1/messages/{id_}", json={"rank": "x"})) == (
        400,
        "invalid_request",
        "rank",
    )


async def test_topics_are_advertised_listed_and_withdrawn(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    await http.put(NEWS)
    made = (await http.put("/v1/topics/news", json={"title": "The news"})).json()
    assert (made["topic"], made["title"], made["subscribers"], made["changed"]) == (
        "news",
        "The news",
        1,
        True,
    )
    assert "changed" not in (await http.put("/v1/topics/news", json={"title": "The news"})).json()
    await http.put("/v1/topics/a.b")
    topics = (await http.get("/v1/topics")).json()["topics"]
    assert [topic["topic"] for topic in topics] == ["a.b", "news"]
    assert (await http.delete("/v1/topics/news")).json() == {"topic": "news", "told": 1}
    assert refusal(await http.delete("/v1/topics/news")) == (404, "not_found", None)
    assert [t["topic"] for t in (await http.get("/v1/topics")).json()["topics"]] == ["a.b"]
    # Who subscribes later is told as well.
    live.register("tablet")
    before = len(list(live.store.all_deliveries()))
    await http.put("/v1/devices/tablet/subscriptions/news")
    assert len(list(live.store.all_deliveries())) == before + 1
    assert refusal(await http.put("/v1/topics/bad%20name")) == (400, "invalid_request", None)


async def test_subscriptions_follow_the_context_by_rules(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    rules = [
        {"topic": "traffic.{city}", "terms": {"mode": "on-line"}},
        {"topic": "work", "when": {"place": ["office"]}},
    ]
    answer = await http.put("/v1/devices/phone/rules", json={"rules": rules})
    assert answer.json() == {"rules": rules}
    assert (await http.get("/v1/devices/phone/rules")).json() == {"rules": rules}

    async def topics() -> list[str]:
        found = (await http.get("/v1/devices/phone/subscriptions")).json()["subscriptions"]
        assert all(row["by_rule"] for row in found)
        return [row["topic"] for row in found]

    assert await topics() == []
    phone = live.connect("phone")
    phone.send(Headers(operation=Operation.CONTEXT), b'{"city": "oslo", "place": "office"}')
    assert await topics() == ["traffic.oslo", "work"]
    phone.send(Headers(operation=Operation.CONTEXT), b'{"city": "tromso", "place": "home"}')
    assert await topics() == ["traffic.tromso"]
    phone.send(Headers(operation=Operation.CONTEXT), b'{"city": "a.b"}')
    assert await topics() == []


@pytest.mark.parametrize(
    "rule, field",
    [
        ({"topic": "traffic.{city:x}"}, "topic"),
        ({"topic": "a b"}, None),
        ({"topic": "a", "terms": {"max": 0}}, "rules[0].terms.max"),
        ({"topic": "a", "when": {"place": []}}, "rules[0].when[...]"),
    ],
)
async def test_a_bad_rule_is_refused(
    http: httpx.AsyncClient, rule: dict[str, object], field: str | None
) -> None:
    answer = await http.put("/v1/devices/phone/rules", json={"rules": [rule]})
    assert refusal(answer) == (400, "invalid_request", field)


async def test_a_subscription_looks_into_messages(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    query = {"xpath": "//goods[. = 'tea']"}
    assert (await http.put(NEWS, params=query)).json()["changed"]
    assert not (await http.put(NEWS, params=query)).json()["changed"]
    listed = (await http.get("/v1/devices/phone/subscriptions")).json()["subscriptions"]
    assert listed == [{"topic": "news", "xpath": "//goods[. = 'tea']"}]
    for goods in ("milk", "tea"):
        body = {"body": f"<goods>{goods}</goods>", "content_type": "application/xml"}
        await http.post("/v1/messages", json={"topic": "news", **body})
    assert [m.body for m in live.connect("phone").messages()] == [b"<goods>tea</goods>"]
    bad = await http.put(NEWS, params={"xpath": "//["})
    assert refusal(bad)[:2] == (400, "malformed_xpath")
