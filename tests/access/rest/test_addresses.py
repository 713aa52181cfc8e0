"""Client addresses, administered over the REST door."""

from __future__ import annotations

import httpx
import pytest

from lasthop.core.apps.credentials import Scope
from tests.access.knocking import refusal
from tests.access.live import START, LiveInMemory


async def test_an_address_stands_for_a_target(http: httpx.AsyncClient) -> None:
    made = await http.put("/v1/addresses/user:staff", json={"target": "topic:staff"})
    assert made.json() == {"address": "USER:staff", "target": "topic:staff"}
    await http.put("/v1/addresses/PLMN:+1-555", json={"target": "user:bob"})
    listed = await http.get("/v1/addresses")
    assert listed.json() == {
        "addresses": [
            {"address": "PLMN:+1555", "target": "user:bob"},
            {"address": "USER:staff", "target": "topic:staff"},
        ]
    }
    assert (await http.delete("/v1/addresses/USER:staff")).status_code == 200
    assert refusal(await http.delete("/v1/addresses/USER:staff"))[:2] == (404, "not_found")


@pytest.mark.parametrize(
    "address, target, field",
    [
        ("staff", "topic:x", "address"),
        ("PLMN:555", "topic:x", "address"),
        ("USER:a%2", "topic:x", "address"),
        ("USER:a", "publisher:x", "target"),
        ("USER:a", "push:x", "target"),
        ("USER:a", "x", "target"),
    ],
)
async def test_what_is_no_address_or_target_is_refused(
    http: httpx.AsyncClient, address: str, target: str, field: str
) -> None:
    path = httpx.URL("/v1/addresses/").join(address.replace("%", "%25").replace(":", "%3A"))
    answer = await http.put(path, json={"target": target})
    assert refusal(answer) == (400, "invalid_request", field)


async def test_devices_have_addresses(http: httpx.AsyncClient) -> None:
    device = {"name": "phone", "addresses": ["plmn:+1-555", "PLMN:+1555", "MAN:12345678"]}
    made = await http.post("/v1/devices", json=device)
    assert made.json()["addresses"] == ["PLMN:+1555", "MAN:12345678"]
    changed = await http.patch("/v1/devices/phone", json={"addresses": ["user:a@b"]})
    assert changed.json()["addresses"] == ["USER:a%40b"]
    other = await http.post("/v1/devices", json={"name": "two", "addresses": ["PLMN:+1555"]})
    assert other.status_code == 201
    taken = await http.patch("/v1/devices/phone", json={"addresses": ["PLMN:+1555"]})
    assert refusal(taken)[:2] == (409, "conflict")
    bad = await http.patch("/v1/devices/phone", json={"addresses": ["PLMN:1"]})
    assert refusal(bad) == (400, "invalid_request", "addresses")


async def test_a_certificate_can_be_a_credential(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    body = {"name": "shop", "scopes": ["publish"], "certificate": "CN=shop"}
    made = (await http.post("/v1/credentials", json=body)).json()
    assert made["certificate"] == "CN=shop"
    assert "token" not in made
    row = live.gateway.credentials.certified("CN=shop")
    assert row is not None
    assert (row.name, row.scopes, row.created_at) == ("shop", Scope.PUBLISH.value, START)
    assert live.gateway.credentials.find("CN=shop") is None
