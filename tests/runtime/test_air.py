"""A running gateway and clients over the air, on real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from lasthop.delivery.ota.datagrams import Datagrams, Endpoint, bound
from lasthop.runtime.failure import Failure
from lasthop.runtime.serve import running
from lasthop.wire.ota.wsp_client import Event, PushArrived, SessionAsked, SessionClient, contact_of
from lasthop.wire.wsp.pdus import Push, decode_unit
from tests.delivery.ota.http_phone import Phone
from tests.runtime.test_serve import DEADLINE, never, settings

CONFIRMED = {"method": "confirmed", "body": "hello", "content_type": "text/plain"}
SI = '<si><indication href="http://www.xyz.com/a">hello</indication></si>'


async def test_a_message_reaches_a_device_that_never_calls(tmp_path: Path) -> None:
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    sock = bound("127.0.0.1", 0)
    port = sock.getsockname()[1]
    sink = await Datagrams.open(sock, lambda data, _: arrived.put_nowait(data))
    async with (
        running(settings(tmp_path), never) as places,
        httpx.AsyncClient(base_url=places.http) as client,
    ):
        route = {"variant": "wsp", "address": f"127.0.0.1:{port}"}
        made = await client.post("/v1/devices", json={"name": "handset", "routes": [route]})
        assert made.status_code == 201, made.text
        assert made.json()["routes"] == [route]
        message = {"device": "handset", "body": SI, "content_type": "text/vnd.wap.si"}
        answer = await client.post("/v1/messages", json=message)
        assert answer.status_code in (200, 201, 202), answer.text
        async with asyncio.timeout(DEADLINE):
            _, pdu = decode_unit(await arrived.get())
        assert isinstance(pdu, Push)
        assert pdu.content_type == "application/vnd.wap.sic"
        metrics = (await client.get("/metrics")).text
        assert 'lasthop_carried_total{outcome="sent",variant="wsp"} 1.0' in metrics
        changed = await client.patch("/v1/devices/handset", json={"routes": []})
        assert changed.json().get("routes", []) == []
    sink.close()


@pytest.mark.parametrize(
    "device, complaint",
    [
        ({"routes": [{"variant": "wsp", "address": "nowhere"}]}, "an IP address"),
        ({"routes": [{"variant": "pigeon", "address": "192.0.2.1"}]}, "pigeon"),
        ({"routes": [{"variant": "wsp", "address": "192.0.2.1"}] * 2}, "given twice"),
        ({"routes": [{"variant": "wsp", "address": f"192.0.2.{n}"} for n in range(9)]}, "8"),
        ({"capabilities": {"ota.max-size": "big"}}, "a capability cannot be read"),
    ],
)
async def test_a_route_that_leads_nowhere_is_refused(
    tmp_path: Path, device: dict[str, object], complaint: str
) -> None:
    async with (
        running(settings(tmp_path), never) as places,
        httpx.AsyncClient(base_url=places.http) as client,
    ):
        answer = await client.post("/v1/devices", json={"name": "handset", **device})
        assert answer.status_code == 400
        assert complaint in answer.text


async def test_an_address_that_is_not_ours_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"cannot send from 192\.0\.2\.99:0"):
        async with running(settings(tmp_path, **{"ota.source": "192.0.2.99:0"}), never):
            raise AssertionError


class SessionPhone:
    """A phone with two real sockets: one for datagrams, one for its session."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.client = SessionClient(first_tid=1)
        self.had: asyncio.Queue[bytes] = asyncio.Queue()
        self.refuses: int | None = None

    async def start(self) -> str:
        """Listen; where."""
        sock = bound(self.host, 0)
        port = sock.getsockname()[1]
        self._units = await Datagrams.open(sock, self._unit)
        self._session = await Datagrams.open(bound(self.host, 0), self._receive)
        return f"{self.host}:{port}"

    def _unit(self, data: bytes, _: Endpoint) -> None:
        self._act(self.client.receive_unit(data))

    def _receive(self, data: bytes, peer: Endpoint) -> None:
        self._act(self.client.receive(data, peer, 0))

    def _act(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, SessionAsked):
                contact = contact_of(event.request)
                assert contact is not None
                self.client.connect(contact, 0)
            elif isinstance(event, PushArrived) and event.side is not None:
                if self.refuses is not None:
                    self.client.refuse(event.side, self.refuses, 0)
                else:
                    self.had.put_nowait(event.push.data)
                    self.client.accept(event.side, 0)
        for data, peer in self.client.datagrams():
            self._session.send(data, peer)

    def close(self) -> None:
        self._units.close()
        self._session.close()


async def outcome(client: httpx.AsyncClient, message: dict[str, str]) -> dict[str, Any]:
    """Publish, and wait for the end of the only delivery."""
    sent = await client.post("/v1/messages", json=message)
    assert sent.status_code in (200, 201, 202), sent.text
    status = await client.get(f"/v1/messages/{sent.json()['id']}", params={"wait": "final"})
    assert status.status_code == 200, status.text
    (delivery,) = status.json()["deliveries"]
    found: dict[str, Any] = delivery
    return found


async def test_a_phone_opens_a_session_and_confirms(tmp_path: Path) -> None:
    phone = SessionPhone("127.0.0.2")
    where = await phone.start()
    ota = {"ota.sessions": "127.0.0.1:0"}
    async with (
        running(settings(tmp_path, **ota), never) as places,
        httpx.AsyncClient(base_url=places.http) as client,
        asyncio.timeout(DEADLINE),
    ):
        route = {"variant": "wsp-session", "address": where}
        await client.post("/v1/devices", json={"name": "handset", "routes": [route]})
        delivery = await outcome(client, {"device": "handset", **CONFIRMED})
        assert delivery["state"] == "delivered"
        assert await phone.had.get() == b"hello"
        phone.refuses = 0xEB
        delivery = await outcome(client, {"device": "handset", **CONFIRMED})
        assert delivery["state"] == "aborted"
    phone.close()


async def test_a_phone_is_called_and_posted_to(tmp_path: Path) -> None:
    phone = Phone()
    await phone.listen("127.0.0.3")
    async with (
        running(settings(tmp_path), never) as places,
        httpx.AsyncClient(base_url=places.http) as client,
        asyncio.timeout(DEADLINE),
    ):
        route = {"variant": "http", "address": f"127.0.0.3:{phone.port}"}
        await client.post("/v1/devices", json={"name": "handset", "routes": [route]})
        delivery = await outcome(client, {"device": "handset", **CONFIRMED})
        assert delivery["state"] == "delivered"
        assert phone.posts[0].pushed[1] == b"hello"
    phone.close()


@pytest.mark.parametrize(
    "setting, value, complaint",
    [
        ("ota.sessions", "nowhere", "ota.sessions: expected an address"),
        ("ota.sessions", "0.0.0.0:0", "ota.contact is needed"),
        ("ota.http", "0.0.0.0:0", "ota.contact is needed"),
        ("ota.sessions", "192.0.2.99:0", "cannot send from"),
    ],
)
async def test_a_setting_that_cannot_work_is_said_in_one_line(
    tmp_path: Path, setting: str, value: str, complaint: str
) -> None:
    with pytest.raises(Failure, match=complaint):
        async with running(settings(tmp_path, **{setting: value}), never):
            raise AssertionError
