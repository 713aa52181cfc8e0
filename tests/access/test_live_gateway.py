"""The door in front of the live engine and a store on disk."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from lasthop.access.rest import RestSettings, make_app
from lasthop.core.gateway import Gateway, Identity
from lasthop.errors import StoreError
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.engine import Engine
from lasthop.store.sqlite import SqliteStore
from lasthop.store.writer import CommitWriter
from tests.access.knocking import knock


async def start(path: Path) -> Engine:
    store = SqliteStore(path)
    restored = store.open()
    clock = SystemClock()
    gateway = Gateway(Identity(), restored, random64=lambda: secrets.randbits(64), now=clock.now())

    def failed(error: StoreError) -> None:
        raise error

    writer = CommitWriter(store, next_commit=restored.next_commit)
    return Engine(gateway, writer=writer, reader=store.reader(), clock=clock, failed=failed)


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    engine = await start(tmp_path / "data")
    async with knock(make_app(engine, RestSettings(open_house=True))) as client:
        yield client
    await engine.close()


async def test_what_was_answered_is_in_the_store(http: httpx.AsyncClient) -> None:
    await http.post("/v1/devices", json={"name": "phone", "subscriptions": ["news"]})
    batch = [{"device": "phone", "body": str(i)} for i in range(50)]
    key = {"idempotency-key": "k"}
    answers = await asyncio.gather(
        *(http.post("/v1/messages", json=batch, headers=key) for _ in range(5)),
        http.post("/news", content=b"line"),
    )
    assert sorted(a.status_code for a in answers) == [200, 200, 200, 200, 200, 202]
    assert len({tuple(a.json()["ids"]) for a in answers[:5]}) == 1
    ids = [*answers[0].json()["ids"], answers[5].json()["message_id"]]
    for id_ in ids[::10]:
        said = (await http.get(f"/v1/messages/{id_}")).json()
        assert said["id"] == id_
        assert said["summary"]["states"] == {"pending": 1}
    cancelled = await http.delete(f"/v1/messages/{ids[0]}")
    assert cancelled.json() == {"cancelled": 1, "too_late": 0}
    waited = await http.get(f"/v1/messages/{ids[0]}?wait=final&timeout=5")
    assert waited.json()["satisfied"] is True


async def test_a_repeated_key_is_known_after_a_restart(tmp_path: Path) -> None:
    key = {"idempotency-key": "k"}
    seen: list[str] = []
    for _ in range(2):
        engine = await start(tmp_path / "data")
        async with knock(make_app(engine, RestSettings(open_house=True))) as http:
            answer = await http.post("/news", content=b"x", headers=key)
            seen.append(answer.json()["message_id"])
        await engine.close()
    assert seen[0] == seen[1]
