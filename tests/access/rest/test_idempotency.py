"""The same request under the same key is one request.

About `access/intake.py` and `core/publishing/acceptance.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given, settings, strategies as st

from lasthop.access.rest import RestSettings, make_app
from lasthop.clock import DAY
from lasthop.core.apps.credentials import Scope
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory

pytestmark = pytest.mark.usefixtures("both_ways_in")

KEY = {"idempotency-key": "order-17"}
NOT_KEPT = {"topic": "nobody", "body": "x", "headers": {"cache": "no"}}
"""A message that is not needed once it was accepted."""
ONE = {"device": "phone", "body": "x", "ttl": "1h"}


@pytest.fixture(autouse=True)
def phone(live: LiveInMemory) -> None:
    live.register("phone", "news")


def count(live: LiveInMemory) -> int:
    return live.store.counts().messages


async def test_a_repeated_request_gets_the_same_id(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    first = await http.post("/v1/messages", json=ONE, headers=KEY)
    live.pass_time(7200)
    again = await http.post("/v1/messages", json=ONE, headers=KEY)
    assert first.status_code == 202
    assert again.status_code == 200
    assert again.json() == {"id": first.json()["id"], "repeated": True}
    assert count(live) == 1


async def test_a_repeated_batch_gets_the_same_ids(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    first = await http.post("/v1/messages", json=[ONE] * 3, headers=KEY)
    again = await http.post("/v1/messages", json=[ONE] * 3, headers=KEY)
    assert again.json() == {"ids": first.json()["ids"], "repeated": True}
    assert count(live) == 3


async def test_the_order_of_fields_and_white_space_make_no_other_request(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    await http.post("/v1/messages", content=b'{"device":"phone","body":"x"}', headers=KEY)
    again = await http.post(
        "/v1/messages", content=b'[\n {"body": "x", "device": "phone"}]', headers=KEY
    )
    assert again.status_code == 200
    assert count(live) == 1


async def test_another_request_under_the_same_key_is_a_conflict(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    await http.post("/v1/messages", json=ONE, headers=KEY)
    other = await http.post("/v1/messages", json=ONE | {"body": "y"}, headers=KEY)
    assert refusal(other) == (409, "conflict", None)
    assert count(live) == 1


async def test_keys_of_different_apps_are_different(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    live.register("phone", app="other")
    await http.post("/v1/messages", json=ONE, headers=KEY)
    other = await http.post("/v1/messages", json=ONE, headers=KEY | {"x-app": "other"})
    assert other.status_code == 202


async def test_a_refused_request_does_not_use_its_key_up(http: httpx.AsyncClient) -> None:
    bad = await http.post("/v1/messages", json=ONE | {"device": "ghost"}, headers=KEY)
    good = await http.post("/v1/messages", json=ONE, headers=KEY)
    assert (bad.status_code, good.status_code) == (404, 202)


async def test_a_key_is_known_longer_than_its_message(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    first = await http.post("/v1/messages", json=NOT_KEPT, headers=KEY)
    live.store.retire(messages_before=live.time + DAY, keys_before=0)
    again = await http.post("/v1/messages", json=NOT_KEPT, headers=KEY)
    assert again.json() == {"id": first.json()["id"][:16], "repeated": True}


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
async def test_a_key_is_short_and_printable(http: httpx.AsyncClient, key: str) -> None:
    answer = await http.post("/v1/messages", json=ONE, headers={"idempotency-key": key})
    assert refusal(answer) == (400, "invalid_request", "Idempotency-Key")


async def test_one_line_requests_have_keys_too(http: httpx.AsyncClient, live: LiveInMemory) -> None:
    first = await http.post("/news", content=b"x", headers=KEY)
    again = await http.post("/news", content=b"x", headers=KEY)
    other = await http.post("/news", content=b"y", headers=KEY)
    assert again.json()["repeated"] is True
    assert again.json()["message_id"] == first.json()["message_id"]
    assert other.status_code == 409
    assert count(live) == 1


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=12), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_concurrent_duplicates_are_one_request(keys: list[str], size: int) -> None:
    async def run() -> None:
        live = LiveInMemory()
        live.register("phone")
        batch = [ONE] * size
        async with knock(make_app(live, RestSettings(open_house=True))) as http:

            async def send(key: str) -> dict[str, Any]:
                headers = {"idempotency-key": key}
                answer = await http.post("/v1/messages", json=batch, headers=headers)
                assert answer.status_code in {200, 202}
                said: dict[str, Any] = answer.json()
                assert said.get("repeated", False) == (answer.status_code == 200)
                return said

            answers = await asyncio.gather(*map(send, keys))
        for key in set(keys):
            ids = [tuple(a["ids"]) for k, a in zip(keys, answers, strict=True) if k == key]
            assert len(set(ids)) == 1
            fresh = [a for k, a in zip(keys, answers, strict=True) if k == key]
            assert sum("repeated" not in a for a in fresh) == 1
        assert count(live) == size * len(set(keys))

    anyio.run(run)


class TestPublishersOfOneApp:
    @pytest.fixture
    async def shops(self, live: LiveInMemory) -> AsyncIterator[list[httpx.AsyncClient]]:
        door = make_app(live, RestSettings())
        for name in "abc":
            live.gateway.admin.admit(name, "default", name, {Scope.PUBLISH}, live.time)
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(knock(door, token=name)) for name in "abc"]

    async def test_have_keys_of_their_own(
        self, shops: list[httpx.AsyncClient], live: LiveInMemory
    ) -> None:
        one, other, third = shops
        first = await one.post("/v1/messages", json=ONE, headers=KEY)
        same = await other.post("/v1/messages", json=ONE, headers=KEY)
        different = await third.post("/v1/messages", json=ONE | {"body": "y"}, headers=KEY)
        assert [a.status_code for a in (first, same, different)] == [202, 202, 202]
        assert count(live) == 3
        again = await one.post("/v1/messages", json=ONE, headers=KEY)
        assert again.json() == {"id": first.json()["id"], "repeated": True}

    @pytest.mark.parametrize("retired", [False, True])
    async def test_keep_the_keys_that_an_older_gateway_stored_without_their_names(
        self, shops: list[httpx.AsyncClient], live: LiveInMemory, retired: bool
    ) -> None:
        one, other, _ = shops
        nobody = NOT_KEPT
        first = await one.post("/v1/messages", json=nobody, headers=KEY)
        as_before(live)
        if retired:
            live.store.retire(messages_before=live.time + DAY, keys_before=0)
        again = await one.post("/v1/messages", json=nobody, headers=KEY)
        assert first.json()["id"].startswith(again.json()["id"])
        assert again.json()["repeated"] is True
        theirs = await other.post("/v1/messages", json=nobody, headers=KEY)
        # Whose key it was is known as long as its message is.
        assert theirs.status_code == (200 if retired else 202)


def as_before(live: LiveInMemory) -> None:
    """Let the store and the gateway know keys as an older gateway wrote them."""
    keys = live.store._kept.keys
    for (app, own), row in list(keys.items()):
        row.key = own.partition("\n")[2]
        del keys[app, own]
        keys[app, row.key] = row
    recent = live.gateway._acceptance._recent
    recent.clear()
    recent.update(keys)
