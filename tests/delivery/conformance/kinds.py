"""Every kind of interconnect, made ready in the same way: a listener for devices, and its URL."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from lasthop.clock import Clock, Micros
from lasthop.delivery.beep import BeepListener
from lasthop.delivery.channel import Switchboard
from lasthop.delivery.http import HttpListener
from lasthop.delivery.listener import Listener
from lasthop.delivery.seqpacket import SeqpacketListener
from lasthop.delivery.tcp import TcpListener
from lasthop.delivery.websocket import WebSocketListener
from lasthop.device.clock import DeviceClock
from lasthop.transport.address import parse
from lasthop.transport.dial import dial
from lasthop.transport.link import ChannelLink, Ends
from lasthop.wire.hop.frames import Credit, Hello, Welcome
from tests.delivery.board import Board, until
from tests.transport.certificates import Authority
from tests.transport.hand import Diary

KINDS = ("tcp", "tcps", "ws", "wss", "http", "https", "poll+http", "seqpacket", "beep", "beeps")
POLLED = "poll+http"
UNORDERED = ("http", "https", POLLED)
STREAMED = ("tcp", "tcps")
SECURE = ("tcps", "wss", "https", "beeps")

WINDOW = Credit(4096, 1 << 26)
HELLO = Hello(app="shop", device="phone", window=WINDOW)
WELCOME = Welcome(incarnation=b"12345678", epoch=1, heartbeat=100, window=WINDOW)


class ShiftedClock(DeviceClock):
    """The real clock, which a test can put forward."""

    def __init__(self) -> None:
        super().__init__()
        self.shift: Micros = 0

    def now(self) -> Micros:
        return super().now() + self.shift


@dataclass
class Place:
    """A listener of one kind, and where it is."""

    kind: str
    url: str
    board: Board
    listener: Listener
    clock: ShiftedClock
    tls: ssl.SSLContext | None


class Caller:
    """A device's end of one channel, played by a test."""

    def __init__(self) -> None:
        self.diary = Diary()
        self.clock = ShiftedClock()
        self.ends = Ends(self.diary, self.clock)
        self.link: ChannelLink


@asynccontextmanager
async def listening(
    kind: str, directory: Path, authority: Authority, *, max_connections: int = 100
) -> AsyncIterator[Place]:
    """A listener of this kind with nobody there yet."""
    board, clock = Board(), ShiftedClock()
    board.welcome = WELCOME
    async with opened(
        kind, board, clock, directory, authority, max_connections=max_connections
    ) as (listener, url):
        tls = authority.client() if kind in SECURE else None
        yield Place(kind, url, board, listener, clock, tls)


@asynccontextmanager
async def opened(
    kind: str,
    board: Switchboard,
    clock: Clock,
    directory: Path,
    authority: Authority,
    *,
    max_connections: int = 100,
) -> AsyncIterator[tuple[Listener, str]]:
    """A listener of this kind that reports to somebody, and its URL."""
    tls = authority.server() if kind in SECURE else None
    async with AsyncExitStack() as stack:
        if kind in ("tcp", "tcps", "beep", "beeps"):
            bound = socket.create_server(("127.0.0.1", 0))
            make = TcpListener if kind in STREAMED else BeepListener
            by_stream = make(board, clock=clock, max_connections=max_connections)
            await by_stream.start(bound, tls=tls)
            stack.push_async_callback(by_stream.stop)
            yield by_stream, f"{kind}://127.0.0.1:{bound.getsockname()[1]}"
        elif kind == "seqpacket":
            path = directory / "hop"
            packets = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            packets.bind(str(path))
            stack.callback(path.unlink)
            stack.enter_context(packets)
            by_packets = SeqpacketListener(board, clock=clock, max_connections=max_connections)
            await by_packets.start(packets)
            stack.push_async_callback(by_packets.stop)
            yield by_packets, f"seqpacket:{path}"
        else:
            by_web: WebSocketListener | HttpListener
            by_web = (WebSocketListener if kind in ("ws", "wss") else HttpListener)(
                board, clock=clock, max_connections=max_connections
            )
            port = await stack.enter_async_context(_web(by_web, tls))
            stack.push_async_callback(by_web.stop)
            every = "?every=0.02" if kind == POLLED else ""
            yield by_web, f"{kind}://127.0.0.1:{port}/hop{every}"


@asynccontextmanager
async def _web(
    app: WebSocketListener | HttpListener, tls: ssl.SSLContext | None
) -> AsyncIterator[int]:
    """A real web server in front of an application; its port."""
    bound = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        ws="websockets-sansio",
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=2,
    )
    config.load()
    config.ssl = tls
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[bound])
    ticking = asyncio.create_task(server.main_loop())
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        await ticking
        await server.shutdown(sockets=[bound])
        bound.close()


@asynccontextmanager
async def calling(place: Place, *, hello: Hello = HELLO) -> AsyncIterator[Caller]:
    """A device that has dialled and heard the answer."""
    caller = Caller()
    caller.link = await dial(parse(place.url), hello, caller.ends, tls=place.tls)
    await until(lambda: bool(caller.diary.opened or caller.diary.ends))
    try:
        yield caller
    finally:
        if not caller.link.over:
            caller.link.cut()
            await until(lambda: caller.link.over)
        caller.ends.alarms.close()
