"""A running gateway and clients over the air, on real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from lasthop.delivery.ota.datagrams import Datagrams, bound
from lasthop.runtime.failure import Failure
from lasthop.runtime.serve import running
from lasthop.wire.wsp.pdus import Push, decode_unit
from tests.runtime.test_serve import DEADLINE, never, settings

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
