"""Devices by WebSocket, over loopback through a real server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from websockets.asyncio.client import connect

from lasthop.delivery.websocket import WebSocketListener
from lasthop.device.clock import DeviceClock
from lasthop.wire.hop.frames import Ack, Close, CloseCode, MessageFrame
from tests.delivery.board import Board, calling, until

pytestmark = pytest.mark.anyio


class Open:
    def __init__(self, board: Board, listener: WebSocketListener, port: int) -> None:
        self.board = board
        self.listener = listener
        self.url = f"ws://127.0.0.1:{port}/hop"


@asynccontextmanager
async def listening(*, max_connections: int = 100) -> AsyncIterator[Open]:
    board = Board()
    listener = WebSocketListener(board, clock=DeviceClock(), max_connections=max_connections)
    bound = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        listener, ws="websockets-sansio", ws_ping_interval=None, lifespan="off", log_config=None
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[bound])
    ticking = asyncio.create_task(server.main_loop())
    try:
        yield Open(board, listener, bound.getsockname()[1])
    finally:
        await listener.stop()
        await until(lambda: listener.connections == 0)
        server.should_exit = True
        await ticking
        await server.shutdown(sockets=[bound])
        bound.close()


async def test_a_device_is_heard_and_welcomed() -> None:
    async with listening() as at, calling(at.url) as caller:
        assert at.board.channels[0].local
        at.board.channels[0].send([MessageFrame(n, 5 + n, None, None, b"hi") for n in range(3)])
        await until(lambda: len(caller.diary.frames) == 3)
        caller.link.send([Ack(3, 3)])
        await until(lambda: (1, Ack(3, 3)) in at.board.frames)


async def test_a_goodbye_reaches_the_other_side() -> None:
    async with listening() as at:
        async with calling(at.url) as caller:
            caller.link.close(CloseCode.BYE, "had enough")
            await until(lambda: caller.link.over)
        await until(lambda: at.board.ends == [(1, "had enough")])


async def test_a_device_that_vanishes_is_missed() -> None:
    async with listening() as at:
        async with calling(at.url) as caller:
            caller.link.cut()
        await until(lambda: len(at.board.ends) == 1)


async def test_the_gateway_has_the_last_word() -> None:
    async with listening() as at, calling(at.url) as caller:
        at.board.channels[0].close(CloseCode.REPLACED, "another one came", 5)
        await until(lambda: caller.link.over)
        assert caller.link.closed == Close(CloseCode.REPLACED, 5, "another one came")


async def test_one_too_many_is_told_to_come_back_later() -> None:
    async with listening(max_connections=1) as at, calling(at.url), calling(at.url) as second:
        assert second.link.closed is not None
        assert second.link.closed.code == CloseCode.OVERLOADED
        assert at.listener.errors == {"overloaded": 1}


async def test_text_is_not_spoken_here() -> None:
    async with listening() as at:
        async with connect(at.url) as peer:
            await peer.send("hello")
            answer = await peer.recv()
        assert isinstance(answer, bytes)
        assert answer.endswith(b"the hop protocol speaks in binary messages")
        await until(lambda: at.listener.errors == {"malformed_frame": 1})


async def test_the_subprotocol_is_agreed_when_it_is_offered() -> None:
    async with listening() as at, calling(at.url):
        async with connect(at.url, subprotocols=["other", "hop"]) as peer:  # type: ignore[list-item]
            assert peer.subprotocol == "hop"
        async with connect(at.url) as peer:
            assert peer.subprotocol is None


@pytest.mark.parametrize(
    "origin, local",
    [
        ("https://evil.example", False),
        ("http://{here}", True),
        ("http://127.0.0.1", False),
        ("null", False),
    ],
)
async def test_a_page_from_elsewhere_is_not_of_this_machine(origin: str, local: bool) -> None:
    async with listening() as at:
        here = at.url.removeprefix("ws://").removesuffix("/hop")
        headers = {"Origin": origin.format(here=here)}
        async with connect(at.url, additional_headers=headers):
            await until(lambda: len(at.board.channels) == 1)
            assert at.board.channels[0].local is local
