"""Surrogates over the REST door, for administrators."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from lasthop.access.rest import RestSettings, make_app
from lasthop.access.rest.surrogate_manager import SurrogateInfo
from lasthop.core.apps.credentials import Scope
from lasthop.errors import Conflict, NotFound
from tests.access.knocking import knock, refusal
from tests.access.live import START, LiveInMemory


class SurrogateManager:
    """Has one surrogate, and knows how to load it once."""

    def __init__(self) -> None:
        self.reloads = 0

    def status(self) -> list[SurrogateInfo]:
        return [self.of("shop")]

    def of(self, app: str) -> SurrogateInfo:
        if app != "shop":
            raise NotFound("this app has no surrogate", app=app)
        return SurrogateInfo(
            app=app,
            place="a:B",
            state="ready",
            reason="",
            pid=7,
            waiting=1,
            queue=2,
            state_bytes=3,
            state_limit=4,
            outcomes={"relayed": 5},
            restarts=self.reloads,
            last_failure="",
        )

    async def reload(self, app: str) -> SurrogateInfo:
        info = self.of(app)
        self.reloads += 1
        if self.reloads > 1:
            raise Conflict("the surrogate of shop cannot be loaded: SyntaxError")
        return info


@pytest.fixture
async def http(live: LiveInMemory) -> AsyncIterator[httpx.AsyncClient]:
    door = make_app(live, RestSettings(open_house=True), surrogate_manager=SurrogateManager())
    async with knock(door) as client:
        yield client


async def test_all_are_listed_and_one_is_shown(http: httpx.AsyncClient) -> None:
    listed = (await http.get("/v1/surrogates")).json()["surrogates"]
    assert [one["app"] for one in listed] == ["shop"]
    assert (await http.get("/v1/surrogates/shop")).json() == listed[0]
    assert listed[0]["outcomes"] == {"relayed": 5}


async def test_one_is_loaded_anew_or_not(http: httpx.AsyncClient) -> None:
    assert (await http.post("/v1/surrogates/shop/reload")).status_code == 200
    refused = await http.post("/v1/surrogates/shop/reload")
    assert refusal(refused)[:2] == (409, "conflict")
    assert "SyntaxError" in refused.text


async def test_an_app_without_one_has_none(http: httpx.AsyncClient) -> None:
    assert refusal(await http.get("/v1/surrogates/other"))[:2] == (404, "not_found")
    assert refusal(await http.post("/v1/surrogates/other/reload"))[:2] == (404, "not_found")


async def test_a_gateway_without_any_has_none(live: LiveInMemory) -> None:
    async with knock(make_app(live, RestSettings(open_house=True))) as http:
        assert (await http.get("/v1/surrogates")).json() == {"surrogates": []}
        assert (await http.post("/v1/surrogates/shop/reload")).status_code == 404


async def test_they_are_for_administrators(live: LiveInMemory) -> None:
    live.gateway.admin.admit("secret", "shop", "p", {Scope.PUBLISH, Scope.DEVICES}, START)
    door = make_app(live, RestSettings(), surrogate_manager=SurrogateManager())
    async with knock(door, token="secret") as http:
        assert (await http.get("/v1/surrogates")).status_code == 403
        assert (await http.post("/v1/surrogates/shop/reload")).status_code == 403
