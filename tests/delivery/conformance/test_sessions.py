"""A device of the SDK and a whole gateway over every kind: what was promised holds, whatever
happens below.

About `delivery/channel.py` and `device/client.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lasthop.device.client import Device
from lasthop.device.message import Message
from lasthop.errors import Conflict, Unauthorized
from tests.delivery.board import until
from tests.delivery.conformance.house import TOKEN, House, housed
from tests.delivery.conformance.kinds import KINDS
from tests.transport.certificates import Authority

pytestmark = pytest.mark.anyio

LOAD = 40
"""Messages each way while something happens."""


class Traffic:
    """A publisher that talks to a device, a device that talks to itself, and what it hears."""

    def __init__(self, house: House, device: Device) -> None:
        self.house = house
        self.device = device
        self.published = 0
        self.said = 0
        self.heard: list[str] = []
        self._going: list[asyncio.Task[None]] = []
        device.on_message(self._hear)

    def _hear(self, message: Message) -> None:
        self.heard.append(message.text)

    async def some(self, count: int = LOAD) -> None:
        """So much more of both, at the same time and without waiting for what it causes."""
        for _ in range(count):
            await self.house.publish(b"published %d" % self.published)
            self.published += 1
            await self.device.send("device:phone", f"said {self.said}")
            self.said += 1

    async def arrived(self) -> None:
        """Until all of it is here; it was each once, and in order."""
        await until(lambda: len(self.heard) >= self.published + self.said)
        for kind, count in (("published", self.published), ("said", self.said)):
            got = [text for text in self.heard if text.startswith(kind)]
            assert got == [f"{kind} {n}" for n in range(count)]
        assert self.house.needless == [], "sent again what was acknowledged"


@asynccontextmanager
async def in_contact(house: House, kind: str) -> AsyncIterator[Traffic]:
    async with house.device(kind) as device:
        await device.contact(timeout=10)
        yield Traffic(house, device)


def cut_newest(device: Device) -> None:
    """The channel that the device speaks over breaks, without a word."""
    device._contact._lines.open[-1].cut()


@pytest.mark.parametrize("kind", KINDS)
async def test_order_holds_under_load(kind: str, authority: Authority, tmp_path: Path) -> None:
    async with housed(authority, tmp_path, kind) as house, in_contact(house, kind) as traffic:
        await traffic.some(150)
        await traffic.arrived()
        assert set(house.times_sent.values()) == {1}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_wrong_token_is_final_and_the_right_one_opens(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    async with housed(authority, tmp_path, kind) as house:
        await house.register("guarded")
        for token in ("guess", None):
            device = house.device(kind, token=token, name="guarded")
            await device.open()
            with pytest.raises(Unauthorized, match="wrong token"):
                await device.run()
        async with house.device(kind, token=TOKEN, name="guarded") as device:
            await device.contact(timeout=10)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_broken_channel_is_replaced_and_nothing_is_lost(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    async with housed(authority, tmp_path, kind) as house, in_contact(house, kind) as traffic:
        for _ in range(4):
            await traffic.some()
            cut_newest(traffic.device)
            await traffic.some(5)
            await traffic.device.contact(timeout=10)
        await traffic.arrived()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_body_of_the_largest_size_passes_both_ways(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    body = bytes(range(256)) * 4090
    async with housed(authority, tmp_path, kind) as house, house.device(kind) as device:
        await device.contact(timeout=10)
        got: list[bytes] = []
        device.on_message(lambda message: got.append(message.body))
        await house.publish(body)
        await device.send("device:phone", body)
        await until(lambda: len(got) == 2)
        assert got == [body, body]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_channel_joins_one_of_another_kind(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    """Both are used at once; when the first breaks, the second goes on, and the first comes
    back."""
    other = KINDS[(KINDS.index(kind) + 3) % len(KINDS)]
    async with (
        housed(authority, tmp_path, kind, other) as house,
        in_contact(house, kind) as traffic,
    ):
        await traffic.some(5)
        await traffic.device.join(house.urls[other], link="other")
        assert traffic.device.channels == 2
        await traffic.some()
        lines = traffic.device._contact._lines
        first = lines.open[0]
        first.cut()
        await traffic.some()
        await traffic.arrived()
        assert traffic.device.connected
        await until(lambda: len(lines.open) == 2 and first not in lines.open)


@pytest.mark.parametrize("kind", KINDS)
async def test_switching_to_every_other_kind_and_back_loses_and_repeats_nothing(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    async with housed(authority, tmp_path) as house, in_contact(house, kind) as traffic:
        for other in KINDS:
            if other == kind:
                continue
            for url in (house.urls[other], house.urls[kind]):
                load = asyncio.create_task(traffic.some(10))
                await traffic.device.switch(url)
                await load
                await until(lambda: traffic.device.channels == 1)
        await traffic.arrived()
        resent = sum(count - 1 for count in house.times_sent.values())
        # What was under way on the old channel when it ended may leave again over the new one.
        assert resent <= 2 * (len(KINDS) - 1) * 20


async def test_requests_teach_nothing_about_how_long_a_connection_lives(
    authority: Authority, tmp_path: Path
) -> None:
    async with housed(authority, tmp_path, "http", "tcp") as house:
        for kind, tries in (("http", False), ("tcp", True)):
            async with in_contact(house, kind) as traffic:
                probe, granted = await traffic.device._contact.probe(60)
                assert (granted is not None) is tries
                probe.end(answered=True)


async def test_what_cannot_be_joined_leaves_the_old_channel_alone(
    authority: Authority, tmp_path: Path
) -> None:
    async with housed(authority, tmp_path, "tcp") as house, in_contact(house, "tcp") as traffic:
        for url in ("http://127.0.0.1:9/hop", "beep://127.0.0.1:9", f"seqpacket:{tmp_path}/none"):
            with pytest.raises(Conflict, match="the channel was not joined"):
                await traffic.device.switch(url)
        await traffic.some(3)
        await traffic.arrived()
