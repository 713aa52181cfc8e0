"""Devices and credentials, administered over REST."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.wire.hop.frames import Headers, Operation
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory


async def register(http: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await http.post("/v1/devices", json={"name": "phone"} | fields)
    assert answer.status_code == 201, answer.text
    said: dict[str, Any] = answer.json()
    return said


class TestDevices:
    async def test_a_new_device_gets_a_token_that_is_shown_once(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        said = await register(
            http,
            user="alice",
            zone="Europe/Oslo",
            capabilities={"screen": "large"},
            subscriptions=["news", "news", "a.b"],
        )
        assert said == {
            "name": "phone",
            "number": 1,
            "user": "alice",
            "zone": "Europe/Oslo",
            "registered_at": "2025-06-15T15:06:40Z",
            "in_contact": False,
            "open": 0,
            "epoch": 0,
            "subscriptions": ["a.b", "news"],
            "capabilities": {"screen": "large"},
            "context": {},
            "token": "secret-1",
        }
        assert live.gateway.registry.named("default", "phone").accepts("secret-1", live.time)
        shown = (await http.get("/v1/devices/phone")).json()
        assert shown == {name: value for name, value in said.items() if name != "token"}

    async def test_a_device_in_contact_shows_its_link_and_context(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        live.register("phone")
        phone = live.connect("phone")
        phone.send(Headers(operation=Operation.CONTEXT), b'{"battery":0.5}')
        await http.post("/v1/messages", json={"device": "phone"})
        shown = (await http.get("/v1/devices/phone")).json()
        assert shown["in_contact"] is True
        assert (shown["link"], shown["network"]) == ("wifi", "home")
        assert shown["context"] == {"battery": 0.5}
        assert (shown["open"], shown["epoch"]) == (1, 1)
        live.gateway.channel_lost(phone.channel, "gone", live.time)
        live.turn()
        shown = (await http.get("/v1/devices/phone")).json()
        assert shown["in_contact"] is False
        assert shown["lost_at"] == "2025-06-15T15:06:40Z"
        assert "link" not in shown

    async def test_names_are_taken_once_in_an_app(self, http: httpx.AsyncClient) -> None:
        await register(http)
        again = await http.post("/v1/devices", json={"name": "phone"})
        assert refusal(again) == (409, "conflict", None)
        other = await http.post("/v1/devices", json={"name": "phone"}, headers={"x-app": "b"})
        assert other.status_code == 201

    @pytest.mark.parametrize(
        "fields, field",
        [
            ({"name": ""}, "name"),
            ({"name": "a b"}, "name"),
            ({"name": "a/b"}, "name"),
            ({"name": "x" * 129}, "name"),
            ({"name": None}, "name"),
            ({"user": "a b"}, "user"),
            ({"zone": "Moon/Crater"}, "zone"),
            ({"zone": "../etc/passwd"}, "zone"),
            ({"zone": "x" * 65}, "zone"),
            ({"capabilities": {"a": 1}}, "capabilities[...]"),
            ({"capabilities": {str(i): "" for i in range(65)}}, "capabilities"),
            ({"subscriptions": ["a b"]}, "subscriptions"),
            ({"colour": "red"}, "colour"),
        ],
    )
    async def test_a_bad_device_is_refused(
        self, http: httpx.AsyncClient, live: LiveInMemory, fields: dict[str, Any], field: str
    ) -> None:
        answer = await http.post("/v1/devices", json={"name": "phone"} | fields)
        assert refusal(answer) == (400, "invalid_request", field)
        assert len(live.gateway.registry) == 0

    async def test_a_device_without_a_name_is_refused(self, http: httpx.AsyncClient) -> None:
        answer = await http.post("/v1/devices", json={})
        assert refusal(answer) == (400, "invalid_request", "name")

    async def test_devices_are_listed_page_by_page(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        for i in range(5):
            live.register(f"p{i}")
            live.register(f"p{i}", app="other")
        found: list[str] = []
        after: int | None = 0
        while after is not None:
            page = (await http.get("/v1/devices", params={"limit": 2, "after": after})).json()
            assert len(page["devices"]) <= 2
            found += [device["name"] for device in page["devices"]]
            after = page.get("next")
        assert found == [f"p{i}" for i in range(5)]

    async def test_a_device_changes_hands(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        await register(http, user="alice", capabilities={"a": "b"})
        answer = await http.patch("/v1/devices/phone", json={"user": "bob", "zone": "Asia/Tokyo"})
        said = answer.json()
        assert (said["user"], said["zone"], said["capabilities"]) == (
            "bob",
            "Asia/Tokyo",
            {"a": "b"},
        )
        assert (await http.post("/v1/messages", json={"user": "alice"})).status_code == 404
        assert (await http.post("/v1/messages", json={"user": "bob"})).status_code == 202
        nobody = await http.patch("/v1/devices/phone", json={"user": ""})
        assert nobody.json()["user"] == ""
        assert (await http.post("/v1/messages", json={"user": "bob"})).status_code == 404

    @pytest.mark.parametrize(
        "fields, field", [({}, None), ({"zone": "x"}, "zone"), ({"name": "x"}, "name")]
    )
    async def test_a_bad_change_is_refused(
        self, http: httpx.AsyncClient, fields: dict[str, Any], field: str | None
    ) -> None:
        await register(http)
        answer = await http.patch("/v1/devices/phone", json=fields)
        assert refusal(answer) == (400, "invalid_request", field)

    async def test_a_new_token_ends_the_old_one(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        live.register("phone")
        live.connect("phone")
        said = (await http.post("/v1/devices/phone/token")).json()
        device = live.gateway.registry.named("default", "phone")
        assert device.accepts(said["token"], live.time)
        assert not device.accepts("token", live.time)
        assert said["in_contact"] is False

    async def test_a_removed_device_is_gone(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        await register(http, subscriptions=["news"])
        answer = await http.delete("/v1/devices/phone")
        assert answer.json() == {"name": "phone", "number": 1, "erased": False}
        for method, path in [
            ("GET", "/v1/devices/phone"),
            ("DELETE", "/v1/devices/phone"),
            ("PATCH", "/v1/devices/phone"),
            ("POST", "/v1/devices/phone/token"),
            ("PUT", "/v1/devices/phone/subscriptions/news"),
        ]:
            content = b'{"user":"x"}' if method == "PATCH" else b""
            answer = await http.request(method, path, content=content)
            assert refusal(answer) == (404, "not_found", None)

    async def test_devices_of_another_app_are_not_found(self, http: httpx.AsyncClient) -> None:
        await register(http)
        for method in "GET", "DELETE":
            answer = await http.request(method, "/v1/devices/phone", headers={"x-app": "b"})
            assert refusal(answer) == (404, "not_found", None)

    async def test_what_a_device_had_is_erased_on_request(self, live: LiveInMemory) -> None:
        erased: list[int] = []

        async def erase(number: int) -> None:
            live.store.erase_device(number)
            erased.append(number)

        number = live.register("phone")
        async with knock(make_app(live, RestSettings(open_house=True), erase=erase)) as http:
            await http.post("/v1/messages", json={"device": "phone"})
            answer = await http.delete("/v1/devices/phone", params={"erase": "true"})
        assert answer.json()["erased"] is True
        assert erased == [number]
        assert live.store.counts().messages == 0

    async def test_who_cannot_erase_removes_nothing(self, http: httpx.AsyncClient) -> None:
        await register(http)
        answer = await http.delete("/v1/devices/phone?erase=true")
        assert refusal(answer) == (400, "invalid_request", "erase")
        assert (await http.get("/v1/devices/phone")).status_code == 200

    async def test_subscriptions_come_and_go(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        await register(http)
        path = "/v1/devices/phone/subscriptions/a.b"
        first = (await http.put(path)).json()
        assert first == {"device": "phone", "topic": "a.b", "subscribed": True, "changed": True}
        assert (await http.put(path)).json()["changed"] is False
        await http.post("/a.b", content=b"x")
        assert (await http.get("/v1/devices/phone")).json()["open"] == 1
        assert (await http.delete(path)).json()["changed"] is True
        assert (await http.delete(path)).json()["changed"] is False
        assert (await http.get("/v1/devices/phone")).json()["subscriptions"] == []

    async def test_a_bad_topic_is_refused(self, http: httpx.AsyncClient) -> None:
        await register(http)
        answer = await http.put("/v1/devices/phone/subscriptions/a..b")
        assert refusal(answer)[:2] == (400, "invalid_request")

    async def test_changes_outlive_a_restart(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        await register(http)
        await http.patch("/v1/devices/phone", json={"user": "bob"})
        await http.put("/v1/devices/phone/subscriptions/news")
        again = LiveInMemory(store=live.store.crash())
        async with knock(make_app(again, RestSettings(open_house=True))) as later:
            shown = (await later.get("/v1/devices/phone")).json()
        assert (shown["user"], shown["subscriptions"]) == ("bob", ["news"])


class TestCredentials:
    async def test_a_credential_is_made_used_and_revoked(
        self, http: httpx.AsyncClient, door: Door
    ) -> None:
        answer = await http.post(
            "/v1/credentials", json={"name": "shop", "scopes": ["publish"], "app": "shop"}
        )
        assert answer.status_code == 201
        assert answer.json() == {
            "app": "shop",
            "name": "shop",
            "scopes": ["publish"],
            "created_at": "2025-06-15T15:06:40Z",
            "token": "secret-1",
        }
        async with knock(door, peer="192.0.2.1", token="secret-1") as shop:
            assert (await shop.post("/news", content=b"x")).status_code == 200
            listed = (await http.get("/v1/credentials", headers={"x-app": "shop"})).json()
            assert [c["name"] for c in listed["credentials"]] == ["shop"]
            assert "token" not in listed["credentials"][0]
            gone = await http.delete("/v1/credentials/shop", headers={"x-app": "shop"})
            assert gone.json() == {"revoked": 1}
            assert (await shop.post("/news", content=b"x")).status_code == 401
        again = await http.delete("/v1/credentials/shop", headers={"x-app": "shop"})
        assert refusal(again) == (404, "not_found", None)

    @pytest.mark.parametrize(
        "fields, field",
        [
            ({"name": "a b"}, "name"),
            ({"scopes": []}, "scopes"),
            ({"scopes": ["everything"]}, "scopes[0]"),
            ({"app": "a b"}, "app"),
            ({"extra": 1}, "extra"),
        ],
    )
    async def test_a_bad_credential_is_refused(
        self, http: httpx.AsyncClient, fields: dict[str, Any], field: str
    ) -> None:
        answer = await http.post(
            "/v1/credentials", json={"name": "x", "scopes": ["publish"]} | fields
        )
        assert refusal(answer) == (400, "invalid_request", field)
