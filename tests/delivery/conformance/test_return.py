"""A device whose connections are reset, at whatever stage of a request, is back at once on either
event loop: it waits for no more than its ordinary backoff.

About `transport/dial.py` and `device/retry.py`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lasthop.device.client import Device
from tests.delivery.board import until
from tests.delivery.conformance.house import House, housed
from tests.delivery.conformance.relay import UP, Relay, relaying
from tests.transport.certificates import Authority

pytestmark = pytest.mark.anyio

KINDS = ("http", "poll+http", "tcp", "ws", "beep")
PROMPT = 5.0
"""Seconds. A device that misses a reset finds out by what it does not hear, which takes a minute;
one that notices is back within a few hundredths, or four seconds when requests are repeated."""


@pytest.fixture(params=[True, False], ids=["uvloop", "asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


class Relayed:
    """A device behind a relay, and what it hears."""

    def __init__(self, house: House, relay: Relay, device: Device) -> None:
        self.house = house
        self.relay = relay
        self.device = device
        self.heard: list[str] = []
        self.said: list[str] = []
        device.on_message(lambda message: self.heard.append(message.text))

    async def down(self) -> None:
        self.said.append(f"down {len(self.said)}")
        await self.house.publish(self.said[-1].encode())

    async def up(self, size: int = 0) -> None:
        self.said.append(f"up {len(self.said)}" + "." * size)
        await self.device.send("device:phone", self.said[-1])

    async def all_heard(self) -> None:
        began = time.monotonic()
        await until(lambda: len(self.heard) >= len(self.said))
        assert self.heard == self.said
        assert time.monotonic() - began < PROMPT


@asynccontextmanager
async def relayed(kind: str, authority: Authority, directory: Path) -> AsyncIterator[Relayed]:
    async with housed(authority, directory, kind) as house:
        port = int(re.findall(r":(\d+)", house.urls[kind])[0])
        async with relaying(port) as (relay, own):
            house.urls["relayed"] = house.urls[kind].replace(f":{port}", f":{own}")
            async with house.device("relayed") as device:
                await device.contact(timeout=10)
                yield Relayed(house, relay, device)


@pytest.mark.parametrize("kind", KINDS)
async def test_resets_of_everything_that_is_open_and_idle(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    async with relayed(kind, authority, tmp_path) as phone:
        for _ in range(5):
            # Both ways, so that requests are held, and connections kept that carried one.
            await phone.up()
            await phone.all_heard()
            await phone.down()
            await phone.all_heard()
            phone.relay.reset_all()
            await asyncio.sleep(0.02)
            await phone.down()
            await phone.all_heard()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [0, 300, 30_000], ids=lambda after: f"after-{after}")
async def test_a_reset_before_or_in_the_middle_of_what_the_device_says(
    kind: str, after: int, authority: Authority, tmp_path: Path
) -> None:
    async with relayed(kind, authority, tmp_path) as phone:
        for round_ in range(1, 3):
            phone.relay.expect(UP, after)
            await phone.up(60_000)
            await phone.all_heard()
            await phone.down()
            await phone.all_heard()
            assert phone.relay.cuts == round_
