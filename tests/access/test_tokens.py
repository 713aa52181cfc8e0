"""Tokens that expire, overlap while they are changed, and name their last use.

About `core/rights/`.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.clock import HOUR, SECOND
from lasthop.wire.hop.frames import Hello
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory


@pytest.fixture
def door(live: LiveInMemory) -> Door:
    return make_app(live, RestSettings(open_house=True))


@pytest.fixture
def local(door: Door) -> httpx.AsyncClient:
    return knock(door)


async def made(local: httpx.AsyncClient, **fields: Any) -> str:
    new = {"name": "shop", "scopes": ["publish"], **fields}
    answer = await local.post("/v1/credentials", json=new)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


async def status(door: Door, token: str) -> int:
    async with knock(door, token=token) as http:
        return (await http.get("/v1/topics")).status_code


async def test_a_credential_ends_when_it_was_said_to(
    door: Door, local: httpx.AsyncClient, live: LiveInMemory
) -> None:
    token = await made(local, expires_in=60)
    (row,) = (await local.get("/v1/credentials")).json()["credentials"]
    assert row["expires_at"]
    assert await status(door, token) == 200
    live.time += 60 * SECOND
    assert await status(door, token) == 401


async def test_a_credential_names_its_last_use_to_the_hour(
    door: Door, local: httpx.AsyncClient, live: LiveInMemory
) -> None:
    token = await made(local)
    used: list[str | None] = []
    for wait in (0, 1, HOUR):
        live.time += wait
        if wait != 0:
            await status(door, token)
        (row,) = (await local.get("/v1/credentials")).json()["credentials"]
        used.append(row.get("used_at"))
    assert used[0] is None
    assert None not in used[1:]
    assert used[1] != used[2]


async def test_two_tokens_are_valid_while_one_takes_the_place_of_the_other(
    door: Door, local: httpx.AsyncClient, live: LiveInMemory
) -> None:
    old = await made(local)
    answer = await local.post("/v1/credentials/shop/rotate", json={"overlap": 60})
    new = answer.json()["token"]
    assert answer.json()["scopes"] == ["publish"]
    assert [await status(door, old), await status(door, new)] == [200, 200]
    live.time += 60 * SECOND
    assert [await status(door, old), await status(door, new)] == [401, 200]
    nobody = await local.post("/v1/credentials/nobody/rotate")
    assert refusal(nobody) == (404, "not_found", None)


async def test_a_rotation_does_not_lengthen_what_ends_before(
    door: Door, local: httpx.AsyncClient, live: LiveInMemory
) -> None:
    old = await made(local, expires_in=10)
    await local.post("/v1/credentials/shop/rotate")
    live.time += 10 * SECOND
    assert await status(door, old) == 401


async def test_a_device_keeps_its_connection_while_its_token_is_changed(
    local: httpx.AsyncClient, live: LiveInMemory
) -> None:
    old = (await local.post("/v1/devices", json={"name": "phone"})).json()["token"]
    answer = await local.post("/v1/devices/phone/token", json={"overlap": 60})
    new = answer.json()["token"]
    device = live.gateway.registry.named("default", "phone")
    assert device.accepts(old, live.time)
    assert device.accepts(new, live.time)
    assert not device.accepts(old, live.time + 60 * SECOND)
    await local.post("/v1/devices/phone/token")
    assert not device.accepts(new, live.time)


async def test_the_token_of_a_device_ends_when_it_was_said_to(
    local: httpx.AsyncClient, live: LiveInMemory
) -> None:
    made = await local.post("/v1/devices", json={"name": "phone", "token_expires_in": 60})
    assert made.status_code == 201, made.text
    device = live.gateway.registry.named("default", "phone")
    old = made.json()["token"]
    assert device.accepts(old, live.time)
    assert not device.accepts(old, live.time + 60 * SECOND)
    shown = (await local.get("/v1/devices/phone")).json()
    assert shown["token_expires_at"] == made.json()["token_expires_at"]
    assert "token_used_at" not in shown

    # An overlap does not lengthen what ends before.
    asked = {"overlap": 3600, "expires_in": 7200}
    new = (await local.post("/v1/devices/phone/token", json=asked)).json()
    assert new["token_expires_at"] > shown["token_expires_at"]
    assert not device.accepts(old, live.time + 60 * SECOND)
    assert device.accepts(new["token"], live.time + 7199 * SECOND)
    assert not device.accepts(new["token"], live.time + 7200 * SECOND)

    lasting = (await local.post("/v1/devices/phone/token")).json()
    assert "token_expires_at" not in lasting
    assert device.accepts(lasting["token"], live.time + 86_400 * SECOND)


async def test_a_device_names_the_last_use_of_its_present_token(
    local: httpx.AsyncClient, live: LiveInMemory
) -> None:
    token = (await local.post("/v1/devices", json={"name": "phone"})).json()["token"]
    hello = Hello(app="default", device="phone", token=token)
    live.gateway.frames_received(1, [hello], live.time)
    assert (await local.get("/v1/devices/phone")).json()["token_used_at"]
    await local.post("/v1/devices/phone/token")
    assert "token_used_at" not in (await local.get("/v1/devices/phone")).json()


class TestTheFirstCredential:
    @pytest.fixture
    def closed(self, live: LiveInMemory) -> Door:
        live.gateway.credentials.offer_first("code", "default", live.time)
        return make_app(live, RestSettings(open_house=False))

    async def test_is_made_with_a_code_that_works_once(
        self, closed: Door, live: LiveInMemory
    ) -> None:
        new = {"name": "root", "scopes": ["admin"]}
        async with knock(closed, token="code") as http:
            few = await http.post("/v1/credentials", json=new | {"scopes": ["publish"]})
            assert few.status_code == 400
            assert "the first credential is an administrator's" in few.json()["error"]["detail"]
            assert refusal(await http.get("/v1/credentials")) == (403, "forbidden", None)
            assert refusal(await http.post("/news", content=b"x")) == (403, "forbidden", None)
            assert not live.gateway.credentials.administered(live.time)
            answer = await http.post("/v1/credentials", json=new)
            assert answer.status_code == 201
            assert live.gateway.credentials.administered(live.time)
            again = await http.post("/v1/credentials", json=new)
            assert refusal(again) == (401, "unauthorized", None)
        async with knock(closed, token=answer.json()["token"]) as http:
            (row,) = (await http.get("/v1/credentials")).json()["credentials"]
            assert row["name"] == "root"

    async def test_cannot_be_made_after_an_hour(self, closed: Door, live: LiveInMemory) -> None:
        live.time += HOUR
        async with knock(closed, token="code") as http:
            answer = await http.post("/v1/credentials", json={"name": "r", "scopes": ["admin"]})
            assert refusal(answer) == (401, "unauthorized", None)
