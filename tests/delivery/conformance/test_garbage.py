"""What a damaging link makes of frames, over every kind: it costs the channel that it came over,
and nothing else. The device dials again, and the session goes on where it was.

About `delivery/` and `device/runner.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from lasthop.device.client import Device
from lasthop.device.retry import Backoff
from lasthop.transport.link import ChannelLink
from lasthop.wire.varint import encode_varint
from tests.delivery.board import until
from tests.delivery.conformance.house import House, housed
from tests.delivery.conformance.kinds import KINDS, STREAMED
from tests.delivery.conformance.test_sessions import in_contact
from tests.transport.certificates import Authority

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("unchecked")]

GARBAGE = {
    "unknown": b"\x70nobody knows this frame",
    "segment": b"\x81there are none",
    "handshake": b"\x41\x01",
    "impossible": b"\x43\xbf\x84\x3d\x01",
    "skip": b"\x45\x00\xbf\x84\x3d",
}
"""Frames that are none, by what is wrong with them."""


def raw(kind: str, unit: bytes) -> list[bytes]:
    """Bytes as the carrier takes them: on a stream every frame is preceded by its length."""
    return [encode_varint(len(unit)) + unit if kind in STREAMED else unit]


def identity(device: Device) -> tuple[bytes | None, int | None]:
    """Which numbering the device and the gateway share."""
    assert device._runner is not None
    session = device._runner.session
    return session._incarnation, session._epoch


def gateways_end(house: House, name: str = "phone") -> ChannelLink:
    (link,) = [link for link, seen in house.channels.items() if seen.device == name]
    assert isinstance(link, ChannelLink)
    return link


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_device_that_hears_garbage_dials_again_and_goes_on(
    kind: str,
    garbage: str,
    authority: Authority,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with housed(authority, tmp_path, kind) as house, in_contact(house, kind) as traffic:
        device = traffic.device
        before = identity(device)
        for count in (1, 2):
            await traffic.some(3)
            await traffic.arrived()
            caplog.clear()
            gateways_end(house).write(raw(kind, GARBAGE[garbage]))
            await until(lambda count=count: device.damaged == count)  # type: ignore[misc]
            assert device.problem.startswith("what the gateway said could not be understood: ")
            (said,) = [r for r in caplog.records if r.levelno == logging.WARNING]
            assert said.message == f"a link was given up: {device.problem}"
            await until(lambda: device.connected)
        await traffic.some(3)
        await traffic.arrived()
        assert identity(device) == before, "the numbering goes on"


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_device_that_is_misheard_loses_a_channel_and_not_its_session(
    kind: str, garbage: str, authority: Authority, tmp_path: Path
) -> None:
    async with (
        housed(authority, tmp_path, kind) as house,
        in_contact(house, kind) as traffic,
        house.device(kind, name="tablet") as tablet,
    ):
        await tablet.contact(timeout=10)
        undisturbed = gateways_end(house, "tablet")
        before = identity(traffic.device)
        for _ in range(2):
            await traffic.some(3)
            await traffic.arrived()
            damaged = gateways_end(house)
            traffic.device._contact._lines.open[-1].write(raw(kind, GARBAGE[garbage]))
            await until(lambda damaged=damaged: damaged.over)  # type: ignore[misc]
            house.forget_acknowledgements()
            await traffic.some(3)
            await traffic.arrived()
        assert identity(traffic.device) == before, "the numbering goes on"
        assert traffic.device.damaged == 0, "it was not the gateway's words that were damaged"
        assert not undisturbed.over


@asynccontextmanager
async def babbling(noise: bytes) -> AsyncIterator[tuple[int, list[float]]]:
    """A server that answers whatever it hears with the same noise; its port, and when it was
    dialled."""
    dialled: list[float] = []
    heard: list[asyncio.Transport] = []

    class Babble(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = cast(asyncio.Transport, transport)
            heard.append(self.transport)
            dialled.append(asyncio.get_running_loop().time())

        def data_received(self, data: bytes) -> None:
            self.transport.write(noise)

    server = await asyncio.get_running_loop().create_server(Babble, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], dialled
    finally:
        server.close()
        for transport in heard:
            transport.abort()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "scheme, noise",
    [
        ("tcp", b"\x05\x7f...."),
        ("tcp", bytes(40)),
        ("tcp", b"\xff" * 40),
        ("ws", b"\x05\x7f....\r\n"),
        ("ws", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ("http", b"\x05\x7f....\r\n"),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ("beep", b"\x05\x7f....\r\n"),
        ("beep", b"RPY 0 0 . 0 4\r\n....END\r\n"),
    ],
)
async def test_garbage_again_and_again_is_dialled_more_and_more_seldom(
    scheme: str, noise: bytes
) -> None:
    async with babbling(noise) as (port, dialled):
        path = "/hop" if scheme in ("ws", "http") else ""
        device = Device(
            f"{scheme}://127.0.0.1:{port}{path}",
            app="shop",
            name="phone",
            backoff=Backoff(first=0.02, longest=1.0, random=lambda: 1.0),
            learn_heartbeat=False,
        )
        async with device:
            await until(lambda: len(dialled) == 5)
            assert not device._ended.is_set()
    pauses = [later - earlier for earlier, later in pairwise(dialled)]
    for n, pause in enumerate(pauses):
        assert pause >= 0.019 * 2**n


async def test_what_follows_garbage_is_no_word_of_the_gateway(
    authority: Authority, tmp_path: Path
) -> None:
    """A refusal that comes on the same channel, after it had failed, is not believed."""
    async with housed(authority, tmp_path, "tcp") as house, in_contact(house, "tcp") as traffic:
        garbage, refusal = b"\x7f!", b"\x42\x04\x00wrong token"
        gateways_end(house).write(raw("tcp", garbage) + raw("tcp", refusal))
        await until(lambda: traffic.device.damaged == 1)
        await traffic.some(3)
        await traffic.arrived()
