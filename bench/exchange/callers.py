"""The callers of the service through the gateway: a publisher at the REST door, or another
device."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from bench.exchange.service import OPERATION, SERVICE, call_message, serial_of
from bench.hop.gateway import Gateway
from bench.hop.idlers import APP
from bench.hop.processes import Failed
from lasthop.device.client import Device
from lasthop.device.exchange.binding import Content
from lasthop.device.exchange.exchange import Exchange
from lasthop.device.exchange.xml import Xml

PUBLISHER: Final = "publisher"
DEVICE: Final = "device"

TIMEOUT: Final = 30.0

Call: TypeAlias = Callable[[int], Awaitable[int]]
"""A function that calls the service with a serial number, and returns the number in the answer."""


@asynccontextmanager
async def publisher(gateway: Gateway, binding: Xml, folder: Path) -> AsyncIterator[Call]:
    """Yield calls from a publisher without a session, which posts to `/v1/services`."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.http, timeout=TIMEOUT)

    def ask(serial: int) -> int:
        content = binding.encode(call_message(serial), f"service:{SERVICE}")
        coding = content.content_type
        path, headers = f"/v1/services/{SERVICE}/{OPERATION}", {"Content-Type": coding}
        connection.request("POST", path, content.body, headers)
        response = connection.getresponse()
        body, kind = response.read(), response.getheader("Content-Type", "")
        if response.status != http.client.OK or kind != coding:
            raise Failed(f"a call in {coding} was answered with {response.status}, {kind}")
        return serial_of(binding.decode(Content(kind, body), "").body)

    try:
        yield lambda serial: asyncio.to_thread(ask, serial)
    finally:
        connection.close()


@asynccontextmanager
async def device(gateway: Gateway, binding: Xml, folder: Path) -> AsyncIterator[Call]:
    """Yield calls from a device of the same app, with the SDK; its own link is not counted."""
    url = f"tcp://127.0.0.1:{gateway.broker.port}"
    async with Device(url, app=APP, name="client", inbox=folder / "client.db") as client:
        exchange = Exchange(client, binding, timeout=TIMEOUT)

        async def ask(serial: int) -> int:
            target, message = f"service:{SERVICE}", call_message(serial)
            return serial_of((await exchange.call(target, message, operation=OPERATION)).body)

        yield ask


CALLERS: Final = {PUBLISHER: publisher, DEVICE: device}
