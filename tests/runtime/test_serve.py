"""The composition root in this process: what starts, what fails, and what is left at the end."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx
import pytest

from lasthop.errors import StoreBroken, StoreError
from lasthop.runtime.failure import Failure
from lasthop.runtime.serve import running
from lasthop.runtime.settings import Settings, load
from lasthop.store.commit import Commit
from lasthop.store.sqlite import SqliteStore

DEADLINE = 30.0


def settings(tmp_path: Path, **options: str) -> Settings:
    listen = {"http.listen": "127.0.0.1:0", "tcp.listen": "127.0.0.1:0"}
    return load(options={"data": str(tmp_path / "data"), **listen, **options})


def never(error: StoreError) -> None:
    raise AssertionError(error)


async def test_nothing_of_a_gateway_is_left_when_it_has_stopped(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    async with (
        running(settings(tmp_path), never) as places,
        httpx.AsyncClient(base_url=places.http) as client,
    ):
        assert (await client.get("/health")).status_code == 200
    with pytest.raises(httpx.ConnectError):
        await httpx.AsyncClient().get(f"{places.http}/health")
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert not {name for name in left if name.startswith("lasthop")}
    SqliteStore(tmp_path / "data").close()


async def test_a_start_that_fails_lets_go_of_everything(tmp_path: Path) -> None:
    async with running(settings(tmp_path), never) as places:
        taken = places.http.removeprefix("http://")
        other = load(options={"data": str(tmp_path / "other"), "http.listen": taken})
        with pytest.raises(Failure, match="the port is in use"):
            async with running(other, never):
                raise AssertionError
    SqliteStore(tmp_path / "other").close()


async def test_a_configured_behaviour_holds_until_another_is_set_and_again_once_that_is_cleared(
    tmp_path: Path,
) -> None:
    file = tmp_path / "lasthop.toml"
    file.write_text('[behaviours.default]\nmax_size = "10B"\ncontent_types = ["text/*"]\n')
    listen = {"http.listen": "127.0.0.1:0", "tcp.listen": "127.0.0.1:0"}
    configured = load(file, options={"data": str(tmp_path / "data"), **listen})
    behaviour, eleven = "/v1/apps/default/behaviour", {"to": "device:d", "body": "x" * 11}
    async with (
        running(configured, never) as places,
        httpx.AsyncClient(base_url=places.http) as client,
    ):
        await client.post("/v1/devices", json={"name": "d"})
        assert (await client.post("/v1/messages", json=eleven)).status_code == 413
        shown = (await client.get(behaviour)).json()
        assert shown == {"max_size": 10, "content_types": ["text/*"]}
        await client.put(behaviour, json={"max_size": 11})
        assert (await client.post("/v1/messages", json=eleven)).is_success
    async with (
        running(configured, never) as places,
        httpx.AsyncClient(base_url=places.http) as client,
    ):
        assert (await client.get(behaviour)).json() == {"max_size": 11}
        assert (await client.delete(behaviour)).json() == shown
        assert (await client.post("/v1/messages", json=eleven)).status_code == 413


async def test_the_data_directory_is_nobody_elses_business(tmp_path: Path) -> None:
    async with running(settings(tmp_path), never):
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0


async def test_a_store_that_breaks_ends_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = asyncio.Event()
    async with running(settings(tmp_path), lambda error: broken.set()) as places:

        def refuse(store: SqliteStore, *commits: Commit) -> None:
            raise StoreBroken("bad sector")

        monkeypatch.setattr(SqliteStore, "apply", refuse)
        async with httpx.AsyncClient(base_url=places.http) as client:
            answer = await client.post("/news", content=b"lost")
            assert answer.status_code == 503
            assert "bad sector" in answer.text
            assert (await client.get("/ready")).status_code == 503
        async with asyncio.timeout(DEADLINE):
            await broken.wait()


async def test_an_erased_device_is_forgotten_by_the_store(tmp_path: Path) -> None:
    body = "a body that must not stay on the disk"
    async with (
        running(settings(tmp_path), never) as places,
        httpx.AsyncClient(base_url=places.http) as client,
    ):
        await client.post("/v1/devices", json={"name": "phone"})
        await client.post("/v1/messages", json={"device": "phone", "body": body})
        gone = await client.delete("/v1/devices/phone", params={"erase": "true"})
        assert gone.json()["erased"] is True
    for file in (tmp_path / "data").glob("store.db*"):
        assert body.encode() not in file.read_bytes()
