"""The documented behaviour of ntfy's API as vectors: a request, and what has to be answered; about
`access/ntfy/ntfy_publishing.py`. `vectors/ntfy.json` was written from the public documentation."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import httpx
import pytest

from lasthop.clock import SECOND
from tests.access.live import START, LiveInMemory

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "vectors" / "ntfy.json").read_text()
)
NOW = START // SECOND


def body_of(vector: dict[str, Any]) -> bytes:
    if "base64" in vector:
        return b64decode(vector["base64"])
    if "json" in vector:
        return json.dumps(vector["json"]).encode()
    return str(vector.get("body", "")).encode() * int(vector.get("times", 1))


def check(expected: Any, given: Any, name: str) -> None:
    """Compare an answer with what is expected of it: `+N` is so many seconds from now, `*` is
    anything, null is nothing."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            check(value, given.get(key), f"{name}.{key}")
    elif isinstance(expected, str) and expected.startswith("+") and expected[1:].isdigit():
        assert given == NOW + int(expected), name
    elif expected == "*":
        assert given, name
    else:
        assert given == expected, name


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
async def test_a_vector(vector: dict[str, Any], http: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded", **vector.get("headers", {})}
    answer = await http.request(
        vector.get("method", "POST"),
        vector["path"],
        content=body_of(vector),
        headers={k.encode(): v.encode() for k, v in headers.items()},
    )
    expected = vector["expect"]
    assert answer.status_code == expected.get("status", 200), answer.text
    if "code" in expected:
        refused = answer.json()
        assert list(refused)[:3] == ["code", "http", "error"]
        assert refused["code"] == expected["code"], answer.text
    if "fields" in expected:
        check(expected["fields"], answer.json(), "answer")
    if "keys" in expected:
        ours = ("message_id", "subscriptions", "kept")
        assert [key for key in answer.json() if key not in ours] == expected["keys"]


async def test_scheduled_messages_are_polled_where_asked(http: httpx.AsyncClient) -> None:
    await http.post("/alpha", content=b"x", headers={"In": "2h"})
    assert (await http.get("/alpha/json?poll=1")).text == ""
    line = json.loads((await http.get("/alpha/json?poll=1&sched=1")).text)
    assert line["time"] == NOW + 7200


async def test_since(http: httpx.AsyncClient, live: LiveInMemory) -> None:
    ids = []
    for text in ("m1", "m2", "m3"):
        ids.append((await http.post("/alpha", content=text)).json()["id"])

    async def polled(query: str) -> list[str]:
        text = (await http.get(f"/alpha/json?poll=1&{query}")).text
        return [json.loads(line)["message"] for line in text.splitlines()]

    assert await polled(f"since={ids[0]}") == ["m2", "m3"]
    assert await polled("since=latest") == ["m3"]
    assert await polled("since=abcdefghijkl") == ["m1", "m2", "m3"]
    assert await polled("since=none") == []
    assert await polled("last=2") == ["m2", "m3"]
    assert await polled(f"id={ids[1]}") == ["m2"]
    assert (await http.get("/alpha/json?poll=1&since=soon")).json()["code"] == 40008


async def test_filters(http: httpx.AsyncClient) -> None:
    await http.post("/alpha", content=b"plain")
    await http.post("/alpha", content=b"urgent", headers={"Priority": "5", "Tags": "a,b"})

    async def polled(query: str) -> str:
        return (await http.get(f"/alpha/raw?poll=1&{query}")).text

    assert await polled("p=3") == "plain\n"
    assert await polled("p=urgent,1") == "urgent\n"
    assert await polled("tags=a,b") == "urgent\n"
    assert await polled("tags=a,c") == ""
    assert await polled("message=plain") == "plain\n"


async def test_an_update_takes_the_place_of_what_it_updates(http: httpx.AsyncClient) -> None:
    await http.put("/alpha/job-7", content=b"v1")
    await http.put("/alpha/job-7", content=b"v2")
    text = (await http.get("/alpha/json?poll=1")).text
    assert [json.loads(line)["message"] for line in text.splitlines()] == ["v2"]
    deleted = (await http.delete("/alpha/job-7")).json()
    assert (deleted["event"], deleted["sequence_id"]) == ("message_delete", "job-7")
    text = (await http.get("/alpha/json?poll=1")).text
    assert [json.loads(line)["event"] for line in text.splitlines()] == ["message_delete"]


async def test_a_scheduled_message_is_deleted_before_it_is_sent(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    await http.put("/alpha/job-8", content=b"later", headers={"In": "1h"})
    await http.delete("/alpha/job-8")
    live.pass_time(7200)
    text = (await http.get("/alpha/json?poll=1&since=all")).text
    assert "later" not in text


async def test_an_uploaded_file_can_be_fetched_for_a_time(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    told = (await http.put("/alpha?f=n.txt&m=see", content=b"abc")).json()
    path = told["attachment"]["url"].removeprefix("http://localhost")
    answer = await http.get(path)
    assert (answer.status_code, answer.content) == (200, b"abc")
    assert answer.headers["content-disposition"] == "attachment"
    wrong = path.replace(path[6:10], "ffff")
    assert (await http.get(wrong)).status_code == 404
    for path_of_none in ("/file/x", "/file/" + "0" * 32):
        assert (await http.get(path_of_none)).json()["code"] == 40401
    live.pass_time(4 * 3600)
    assert (await http.get(path)).status_code == 404


async def test_what_is_not_known_is_named(http: httpx.AsyncClient) -> None:
    told = (
        await http.post(
            "/alpha?colour=red", content=b"x", headers={"X-Sound": "bell", "X-Request-Id": "1"}
        )
    ).json()
    assert told["ignored"] == ["colour", "x-sound"]
    assert "ignored" not in (await http.post("/alpha", content=b"x")).json()
    told = (await http.post("/", json={"topic": "alpha", "message": "x", "sound": "bell"})).json()
    assert told["ignored"] == ["sound"]
