"""Groups, queues, and what binds their messages, over REST."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from lasthop.clock import SECOND
from lasthop.core.registry import hash_token
from lasthop.wire.hop.frames import ALL_FEATURES, Ack, Headers, Hello, MessageFrame, Operation
from tests.access.knocking import refusal
from tests.access.live import LiveInMemory


@pytest.fixture(autouse=True)
def devices(live: LiveInMemory) -> None:
    for name in ("anna", "bert"):
        live.register(name)


def come(live: LiveInMemory, name: str) -> int:
    """A device that knows groups is there."""
    channel = next(live._channels)
    token = f"token-{name}"
    live.gateway.admin.amend("default", name, live.time, token_hash=hash_token(token))
    hello = Hello(app="default", device=name, token=token, features=int(ALL_FEATURES))
    hear(live, channel, hello)
    return channel


def hear(live: LiveInMemory, channel: int, *frames: Any) -> None:
    live.gateway.frames_received(channel, frames, live.time, local=True)
    live.turn()


async def crew(http: httpx.AsyncClient) -> None:
    await http.put("/v1/groups/crew")
    for name in ("anna", "bert"):
        await http.put(f"/v1/groups/crew/members/{name}")


async def publish(http: httpx.AsyncClient, **message: Any) -> str:
    answer = await http.post("/v1/messages", json={"body": "x", **message})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


async def test_a_group_is_made_filled_and_dissolved(http: httpx.AsyncClient) -> None:
    made = (await http.put("/v1/groups/crew", json={"title": "On duty", "open": False})).json()
    assert (made["name"], made["title"], made["open"], made["members"]) == (
        "crew",
        "On duty",
        False,
        0,
    )
    assert made["changed"]
    again = await http.put("/v1/groups/crew", json={"title": "On duty", "open": False})
    assert "changed" not in again.json()
    added = (await http.put("/v1/groups/crew/members/anna")).json()
    assert added == {"device": "anna", "target": "group:crew", "belongs": True, "changed": True}
    await http.put("/v1/groups/crew/members/bert")
    shown = (await http.get("/v1/groups/crew?limit=1")).json()
    assert (shown["devices"], shown["more"], shown["members"]) == (["anna"], True, 2)
    assert [g["name"] for g in (await http.get("/v1/groups")).json()["groups"]] == ["crew"]
    gone = (await http.delete("/v1/groups/crew/members/anna")).json()
    assert not gone["belongs"]
    assert (await http.delete("/v1/groups/crew")).json() == {"name": "crew", "left": 1}


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("GET", "/v1/groups/none", 404),
        ("DELETE", "/v1/groups/none", 404),
        ("PUT", "/v1/groups/none/members/anna", 404),
        ("PUT", "/v1/groups/crew/members/nobody", 404),
        ("PUT", "/v1/groups/a%20b", 400),
        ("PUT", f"/v1/groups/{'x' * 201}", 413),
        ("GET", "/v1/queues/none", 404),
        ("PUT", "/v1/queues/none/consumers/anna", 404),
    ],
)
async def test_what_is_not_there_or_has_no_name_is_refused(
    http: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    await http.put("/v1/groups/crew")
    answer = await http.request(method, path)
    assert answer.status_code == status, answer.text
    assert refusal(answer)


@pytest.mark.parametrize(
    "message, words",
    [
        ({"group": "crew", "atomic": True}, "needs deliver_before"),
        (
            {"group": "crew", "atomic": True, "claim": True, "ttl": 9},
            "both atomic and claimable",
        ),
        ({"device": "anna", "claim": True}, "only a message for a group"),
        ({"to": "queue:none"}, "no such queue"),
        ({"group": "none"}, "nobody is in this group"),
        ({"group": "crew", "topic": "news"}, "one target"),
    ],
)
async def test_what_cannot_be_promised_is_refused(
    http: httpx.AsyncClient, message: dict[str, Any], words: str
) -> None:
    await crew(http)
    answer = await http.post("/v1/messages", json={"body": "x", **message})
    assert words in answer.text


async def test_an_atomic_message_tells_how_it_stands(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    await crew(http)
    anna, bert = come(live, "anna"), come(live, "bert")
    message = await publish(http, group="crew", atomic=True, ttl=10)
    assert (await http.get(f"/v1/messages/{message}")).json()["outcome"] == "held"
    waiting = asyncio.ensure_future(http.get(f"/v1/messages/{message}?wait=settled"))
    while not live.watchers:  # noqa: ASYNC110
        await asyncio.sleep(0)
    hear(live, anna, Ack(1, 1))
    hear(live, bert, Ack(1, 1))
    status = (await waiting).json()
    assert (status["outcome"], status["satisfied"]) == ("released", True)
    other = await publish(http, group="crew", atomic=True, ttl=10)
    assert (await http.delete(f"/v1/messages/{other}")).json() == {"cancelled": 2, "too_late": 0}
    assert (await http.get(f"/v1/messages/{other}")).json()["outcome"] == "cancelled"
    assert (await http.delete(f"/v1/messages/{message}")).status_code == 409


async def test_the_sender_learns_the_winner(http: httpx.AsyncClient, live: LiveInMemory) -> None:
    await crew(http)
    anna = come(live, "anna")
    message = await publish(http, group="crew", claim=True)
    status = (await http.get(f"/v1/messages/{message}?wait=settled&timeout=0")).json()
    assert (status["outcome"], status["satisfied"]) == ("claimable", False)
    claim = Headers(operation=Operation.CLAIM, in_reply_to=int(message[:16], 16))
    hear(live, anna, MessageFrame(0, 9, None, claim, b""))
    status = (await http.get(f"/v1/messages/{message}?wait=settled")).json()
    assert (status["outcome"], status["claimed_by"]) == ("claimed", "anna")
    assert status["satisfied"]


async def test_cancelling_is_for_all_and_asking_again_gets_the_same_answer(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    await crew(http)
    await http.put("/v1/queues/jobs")
    hear(live, come(live, "anna"), Ack(0, 0))
    for message, count in (
        ({"group": "crew", "claim": True}, 2),
        ({"group": "crew", "atomic": True, "ttl": 9}, 2),
        ({"to": "queue:jobs"}, 1),
    ):
        key = await publish(http, **message)
        for _ in range(2):
            answer = await http.delete(f"/v1/messages/{key}")
            assert answer.json() == {"cancelled": count, "too_late": 0}


async def test_a_queue_is_made_used_and_removed(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    rules = {"title": "Work", "patience": 5, "prefetch": 1}
    made = (await http.put("/v1/queues/jobs", json=rules)).json()
    assert {name: made[name] for name in rules} == rules
    first = await publish(http, to="queue:jobs")
    second = await publish(http, to="queue:jobs")
    assert (await http.delete("/v1/queues/jobs")).status_code == 409
    status = (await http.get(f"/v1/messages/{first}?wait=final&timeout=0")).json()
    assert not status["satisfied"]
    await http.put("/v1/queues/jobs/consumers/anna")
    anna = come(live, "anna")
    shown = (await http.get("/v1/queues/jobs")).json()
    assert shown["devices"] == [{"device": "anna", "in_contact": True, "holding": 1}]
    assert (shown["waiting"], shown["consumers"]) == (1, 1)
    hear(live, anna, Ack(1, 1))
    hear(live, anna, Ack(2, 2))
    status = (await http.get(f"/v1/messages/{second}?wait=final")).json()
    assert [d["state"] for d in status["deliveries"]] == ["delivered"]
    assert [q["name"] for q in (await http.get("/v1/queues")).json()["queues"]] == ["jobs"]
    await http.delete("/v1/queues/jobs/consumers/anna")
    assert (await http.delete("/v1/queues/jobs")).json() == {"name": "jobs", "left": 0}


async def test_what_expires_in_a_queue_says_so(http: httpx.AsyncClient, live: LiveInMemory) -> None:
    await http.put("/v1/queues/jobs")
    message = await publish(http, to="queue:jobs", ttl=1)
    live.time += 2 * SECOND
    live.turn()
    status = (await http.get(f"/v1/messages/{message}?wait=final")).json()
    assert (status["outcome"], status["satisfied"]) == ("expired", True)


async def test_a_queue_keeps_to_its_rules(http: httpx.AsyncClient) -> None:
    for rules in ({"patience": 0}, {"prefetch": 0}, {"unknown": 1}):
        assert (await http.put("/v1/queues/jobs", json=rules)).status_code == 400
