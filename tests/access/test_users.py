"""Users over REST: added, changed, removed and listed by administrators.

About `access/rest/users.py`.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lasthop.access.rest import RestSettings, make_app
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory
from tests.runtime.issuers.signing import Vouching


@pytest.fixture
def live() -> LiveInMemory:
    return LiveInMemory(tokens=Vouching())


@pytest.fixture
def http(live: LiveInMemory) -> httpx.AsyncClient:
    return knock(make_app(live, RestSettings(open_house=True)))


async def test_a_user_is_added_changed_and_removed(http: httpx.AsyncClient) -> None:
    anna: dict[str, Any] = {"name": "anna", "devices": [], "rules": [], "added": True}
    new = {"name": "anna", "scopes": ["publish"], "roles": ["ops"]}
    added = await http.post("/v1/users", json=new)
    assert (added.status_code, added.json()) == (201, anna | new)
    assert refusal(await http.post("/v1/users", json=new)) == (409, "conflict", None)
    await http.put("/v1/rules/r", json={"who": ["role:ops"], "allow": ["send"], "on": ["#"]})
    assert (await http.get("/v1/users/anna")).json()["rules"] == ["r"]
    changed = await http.patch("/v1/users/anna", json={"access": "blocked", "roles": []})
    assert changed.json() == anna | {"scopes": ["publish"], "access": "blocked"}
    assert (await http.patch("/v1/users/anna", json={})).json() == changed.json()
    assert (await http.get("/v1/users")).json() == {"users": [changed.json()]}
    assert (await http.get("/v1/users", headers={"x-app": "other"})).json() == {"users": []}
    assert (await http.delete("/v1/users/anna")).json() == {"removed": "anna"}
    for method in ("GET", "PATCH", "DELETE"):
        answer = await http.request(method, "/v1/users/anna", json={})
        assert refusal(answer) == (404, "not_found", None)


async def test_a_user_with_a_device_stays_in_the_list(http: httpx.AsyncClient) -> None:
    await http.post("/v1/users", json={"name": "anna"})
    await http.post("/v1/devices", json={"name": "phone", "user": "anna"})
    await http.delete("/v1/users/anna")
    shown = (await http.get("/v1/users/anna")).json()
    assert shown == {"name": "anna", "devices": ["phone"], "rules": []}


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "a/b"},
        {"name": "x" * 129},
        {"name": "anna", "scopes": ["all"]},
        {"name": "anna", "roles": ["a b"]},
        {"name": "anna", "roles": [""]},
        {"name": "anna", "roles": ["r"] * 65},
        {"name": "anna", "access": "maybe"},
        {"name": "anna", "more": 1},
        {},
    ],
)
async def test_what_cannot_be_meant_is_refused(
    http: httpx.AsyncClient, wrong: dict[str, Any]
) -> None:
    assert (await http.post("/v1/users", json=wrong)).status_code == 400
    assert (await http.get("/v1/users")).json() == {"users": []}


async def test_who_is_blocked_is_refused_at_once(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    door = make_app(live, RestSettings())
    await http.post("/v1/users", json={"name": "anna", "scopes": ["admin"]})
    async with knock(door, peer="192.0.2.1", token="eyJ.anna.60") as anna:
        assert (await anna.get("/v1/users")).status_code == 200
        await http.patch("/v1/users/anna", json={"access": "blocked"})
        assert refusal(await anna.get("/v1/users")) == (403, "forbidden", None)
        await http.patch("/v1/users/anna", json={"access": "open", "scopes": []})
        assert refusal(await anna.get("/v1/users")) == (403, "forbidden", None)
