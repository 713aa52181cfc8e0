"""Connections that wait for their HELLO: what arrives meanwhile is not lost, and who sends too much
is cut off. About `transport/connected.py`."""

from __future__ import annotations

import asyncio
import socket

import pytest

from lasthop.device.clock import DeviceClock
from lasthop.transport.address import parse
from lasthop.transport.connected import MOST_HELD, HeldConnection, HeldStream
from lasthop.transport.dial import connect
from lasthop.transport.link import Ends
from lasthop.wire.hop.frames import Close, CloseCode, Hello
from lasthop.wire.hop.handshake import Waiting
from lasthop.wire.hop.mapping import Mapping
from tests.transport.hand import Diary

pytestmark = pytest.mark.anyio

HELLO = Hello(app="shop", device="phone")


class Peer:
    """A gateway's end of a connection, played by hand."""

    def __init__(self) -> None:
        self.bound = socket.create_server(("127.0.0.1", 0))
        self.bound.setblocking(False)

    async def connect(self) -> tuple[HeldConnection, socket.socket]:
        url = f"tcp://127.0.0.1:{self.bound.getsockname()[1]}"
        connected = await connect(parse(url))
        mine, _ = await asyncio.get_running_loop().sock_accept(self.bound)
        self.bound.close()
        return connected, mine


async def test_nothing_is_sent_before_the_hello() -> None:
    connected, mine = await Peer().connect()
    mine.setblocking(False)
    await asyncio.sleep(0.05)
    with pytest.raises(BlockingIOError):
        mine.recv(1)
    diary = Diary()
    await connected.say(HELLO, Ends(diary, DeviceClock()))
    assert await asyncio.get_running_loop().sock_recv(mine, 100)
    mine.close()


async def test_a_close_that_came_before_the_hello_is_heard() -> None:
    connected, mine = await Peer().connect()
    gateway = Waiting(mapping=Mapping.STREAM, now=0)
    gateway.close(Close(CloseCode.OVERLOADED, 5000, "too many connections"))
    mine.sendall(b"".join(gateway.data_to_send()))
    mine.close()
    await asyncio.sleep(0.05)
    diary = Diary()
    link = await connected.say(HELLO, Ends(diary, DeviceClock()))
    assert link.closed is not None
    assert link.closed.retry_after_ms == 5000
    assert link.over


async def test_a_connection_that_is_dropped_is_gone() -> None:
    connected, mine = await Peer().connect()
    connected.drop()
    assert await asyncio.get_running_loop().sock_recv(mine, 1) == b""
    mine.close()


async def test_who_talks_without_having_been_asked_is_cut_off() -> None:
    cut: list[str] = []

    class Transport(asyncio.Transport):
        def abort(self) -> None:
            cut.append("cut")

    held = HeldStream()
    held.connection_made(Transport())
    held.data_received(bytes(MOST_HELD))
    assert not cut
    held.data_received(b"x")
    assert cut
