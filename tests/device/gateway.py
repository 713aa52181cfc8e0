"""A real gateway on loopback, with its store in memory."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256

import uvicorn

from lasthop.core.gateway import Gateway, Identity
from lasthop.core.publishing.submission import Submission
from lasthop.delivery.tcp import TcpListener
from lasthop.delivery.websocket import Receive, Scope, Send, WebSocketListener
from lasthop.device.clock import DeviceClock
from lasthop.errors import StoreError
from lasthop.message import Target, TargetKind
from lasthop.runtime.engine import Engine
from lasthop.store.memory import MemoryStore
from lasthop.store.writer import CommitWriter

APP = "shop"


class LiveGateway:
    """Engine, listeners and store; it can be stopped and started again on the same ports."""

    def __init__(self, *, open_house: bool = True, tls: ssl.SSLContext | None = None) -> None:
        self.clock = DeviceClock()
        self.store = MemoryStore(incarnation=7)
        self.identity = Identity(open_house=open_house)
        self.tls = tls
        self._failures_expected = False
        self.port = 0
        self.websocket_port = 0
        self.engine: Engine
        self.tcp: TcpListener
        self.websocket: WebSocketListener

    @property
    def tcp_url(self) -> str:
        return f"tcp{'s' if self.tls else ''}://localhost:{self.port}"

    @property
    def websocket_url(self) -> str:
        return f"ws://localhost:{self.websocket_port}/hop"

    async def start(self) -> None:
        restored = self.store.open()
        gateway = Gateway(self.identity, restored, random64=lambda: 1, now=self.clock.now())
        self.engine = Engine(
            gateway,
            writer=CommitWriter(self.store, next_commit=restored.next_commit),
            reader=self.store.reader(),
            clock=self.clock,
            failed=self._failed,
        )
        self.tcp = TcpListener(self.engine, clock=self.clock)
        self.websocket = WebSocketListener(self.engine, clock=self.clock)
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        await self.tcp.start(listener, tls=self.tls)

    async def stop(self) -> None:
        await self.tcp.stop()
        await self.websocket.stop()
        await self.engine.stop()
        await asyncio.to_thread(self.engine._writer.close)
        self.engine._reading.shutdown()

    async def crash(self) -> None:
        """Cut all links and come back with what was committed."""
        self._failures_expected = True
        survivor = self.store.crash()
        # A process that is gone turns no more cranks, whatever is still to be said to it.
        self.engine._turn = lambda: None  # type: ignore[method-assign]
        for link in list(self.tcp._links):
            link.cut()
        await self.stop()
        self._failures_expected = False
        self.store = survivor
        await self.start()

    def _failed(self, error: StoreError) -> None:
        assert self._failures_expected, f"the store failed: {error}"

    async def publish(self, *bodies: str, target: str = "device:phone") -> list[str]:
        kind, _, name = target.partition(":")
        submissions = [
            Submission(target=Target(TargetKind(kind), name), body=body.encode()) for body in bodies
        ]
        receipt = await self.engine.call(
            lambda gateway, now: gateway.publish(APP, "test", submissions, now)
        )
        return receipt.ids


@asynccontextmanager
async def live_gateway(
    *, open_house: bool = True, tls: ssl.SSLContext | None = None
) -> AsyncIterator[LiveGateway]:
    gateway = LiveGateway(open_house=open_house, tls=tls)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop()


@asynccontextmanager
async def websocket_server(gateway: LiveGateway) -> AsyncIterator[None]:
    """Serve the gateway's WebSocket listener."""
    listener = socket.create_server(("127.0.0.1", 0))
    gateway.websocket_port = listener.getsockname()[1]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await gateway.websocket(scope, receive, send)

    config = uvicorn.Config(
        app,
        ws="websockets-sansio",
        ws_ping_interval=None,
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    ticking = asyncio.create_task(server.main_loop())
    try:
        yield
    finally:
        server.should_exit = True
        await ticking
        await server.shutdown(sockets=[listener])
        listener.close()


async def until(happened: Callable[[], bool], *, timeout: float = 5.0) -> None:  # noqa: ASYNC109
    """Wait for something that another part of the same loop does."""
    async with asyncio.timeout(timeout):
        while not happened():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


def token_hash(token: str) -> bytes:
    return sha256(token.encode()).digest()
