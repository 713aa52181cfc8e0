"""Devices by TCP, over loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lasthop.delivery.tcp import TcpListener
from lasthop.device.clock import DeviceClock
from lasthop.transport.stream import StreamLink
from lasthop.wire.hop.frames import Ack, CloseCode, Hello, MessageFrame
from tests.delivery.board import Board, calling, until
from tests.transport.hand import HandClock

pytestmark = pytest.mark.anyio


class Open:
    """A listener, its switchboard and its address."""

    def __init__(self, board: Board, listener: TcpListener, port: int) -> None:
        self.board = board
        self.listener = listener
        self.port = port
        self.url = f"tcp://127.0.0.1:{port}"


@asynccontextmanager
async def listening(*, max_connections: int = 100) -> AsyncIterator[Open]:
    board = Board()
    listener = TcpListener(board, clock=DeviceClock(), max_connections=max_connections)
    bound = socket.create_server(("127.0.0.1", 0))
    await listener.start(bound)
    try:
        yield Open(board, listener, bound.getsockname()[1])
    finally:
        await listener.stop()
        await until(lambda: listener.connections == 0)


async def test_a_device_is_heard_and_welcomed() -> None:
    async with listening() as at, calling(at.url) as caller:
        (number, hello), *_ = at.board.frames
        assert number == 1
        assert isinstance(hello, Hello)
        assert at.board.channels[0].local
        at.board.channels[0].send([MessageFrame(0, 5, None, None, b"hi")])
        await until(lambda: bool(caller.diary.frames))
        caller.link.send([Ack(1, 1)])
        await until(lambda: (1, Ack(1, 1)) in at.board.frames)
        assert at.listener.connections == 1


async def test_a_device_that_leaves_is_missed_once() -> None:
    async with listening() as at:
        async with calling(at.url) as caller:
            caller.link.close(CloseCode.BYE, "had enough")
        await until(lambda: at.board.ends == [(1, "had enough")])
        assert at.listener.errors == {}


async def test_small_packets_are_sent_at_once() -> None:
    async with listening() as at, calling(at.url) as caller:
        for link in (caller.link, at.board.channels[0]):
            assert isinstance(link, StreamLink)
            assert link._transport is not None
            sock = link._transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_one_too_many_is_told_to_come_back_later() -> None:
    async with (
        listening(max_connections=1) as at,
        calling(at.url),
        calling(at.url) as second,
    ):
        close = second.link.closed
        assert close is not None
        assert (close.code, close.reason) == (CloseCode.OVERLOADED, "too many connections")
        assert close.retry_after_ms == 10_000
        assert at.listener.errors == {"overloaded": 1}
        assert len(at.board.channels) == 1


async def test_a_peer_that_talks_nonsense_disturbs_nobody() -> None:
    async with listening() as at, calling(at.url) as good:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(b"\x01\x01")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert answer.endswith(b"the first frame is not a HELLO (frame='PING')")
        await until(lambda: len(at.board.ends) == 1)
        assert at.listener.errors == {"malformed_frame": 1}
        at.board.channels[0].send([MessageFrame(0, 5, None, None, b"still there")])
        await until(lambda: bool(good.diary.frames))


async def test_a_peer_that_does_not_read_is_noticed_and_not_read_from() -> None:
    async with listening() as at, calling(at.url) as caller:
        assert isinstance(caller.link, StreamLink)
        assert caller.link._transport is not None
        caller.link._transport.pause_reading()
        channel = at.board.channels[0]
        seq = 0
        while not at.board.pauses:
            channel.send([MessageFrame(None, 5 + seq, None, None, bytes(50_000))])
            seq += 1
            await asyncio.sleep(0)
        assert at.board.pauses == [(1, True)]
        caller.link.send([Ack(1, 1)])
        await asyncio.sleep(0.05)
        assert (1, Ack(1, 1)) not in at.board.frames
        caller.link._transport.resume_reading()
        await until(lambda: at.board.pauses == [(1, True), (1, False)])
        await until(lambda: (1, Ack(1, 1)) in at.board.frames)


async def test_a_listener_that_stops_says_so() -> None:
    async with listening() as at, calling(at.url) as caller:
        await at.listener.stop()
        await until(lambda: caller.link.over)
        assert caller.link.closed is not None
        assert caller.link.closed.code == CloseCode.SHUTTING_DOWN


async def test_a_unix_socket_is_always_local(tmp_path: Path) -> None:
    board = Board()
    listener = TcpListener(board, clock=DeviceClock())
    path = tmp_path / "hop.sock"
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(path))
    await listener.start(bound)
    async with calling(f"unix:{path}"):
        assert board.channels[0].local
    await listener.stop()
    await until(lambda: listener.connections == 0)


async def test_silence_and_strange_clocks_are_counted_as_timeouts() -> None:
    board = Board()
    clock = HandClock()
    listener = TcpListener(board, clock=clock)
    bound = socket.create_server(("127.0.0.1", 0))
    await listener.start(bound)
    _, writer = await asyncio.open_connection("127.0.0.1", bound.getsockname()[1])
    await until(lambda: listener.connections == 1)
    clock.time += 11_000_000
    for link in list(listener._links):
        link.timeout()
    await until(lambda: listener.connections == 0)
    assert listener.errors == {"timeout": 1}
    assert board.ends == [(1, "the handshake took too long")]
    writer.close()
    await listener.stop()
