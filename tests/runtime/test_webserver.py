"""The HTTP server on real sockets, with little patience and few places."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest
from websockets.asyncio.client import connect

from lasthop.runtime.admission import Admission
from lasthop.runtime.front import Receive, Scope, Send
from lasthop.runtime.guard import Guard, GuardPatience
from lasthop.runtime.settings import load
from lasthop.runtime.webserver import WebServer
from tests.transport.certificates import Authority

SHORT = GuardPatience(handshake=0.2, first=0.2, head=0.2, crowded=0.1, body=0.2, unread=0.1)
PATIENT = 20.0
"""Seconds until a test has failed."""

GET = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Site:
    """Serves, counts, and remembers what became of its conversations."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.port = 0
        self.over = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._talk(receive, send)
            return
        if scope["path"] == "/upload":
            while (await receive()).get("more_body"):
                pass
        if scope["path"] == "/held":
            await asyncio.sleep(1.0)
        size = 30_000_000 if scope["path"] == "/large" else 2
        length = (b"content-length", b"%d" % size)
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        for left in range(size, 0, -65536):
            more = left > 65536
            body = bytes(min(left, 65536))
            await send({"type": "http.response.body", "body": body, "more_body": more})
        self.over.set()

    async def _talk(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        message = await receive()
        while message["type"] == "websocket.receive":
            if message.get("text") == "flood":
                with suppress(TimeoutError):
                    while True:  # As long as the system takes it.
                        flood = send({"type": "websocket.send", "bytes": bytes(1_000_000)})
                        await asyncio.wait_for(flood, 0.1)
                break
            await send({"type": "websocket.send", "text": message["text"]})
            message = await receive()
        self.over.set()

    @asynccontextmanager
    async def call(
        self, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=tls, server_hostname="localhost" if tls else None
        )
        try:
            yield reader, writer
        finally:
            writer.close()

    async def answer(self, request: bytes, tls: ssl.SSLContext | None = None) -> bytes:
        """What one connection hears until it is closed."""
        async with self.call(tls) as (reader, writer):
            writer.write(request)
            async with asyncio.timeout(PATIENT):
                return await reader.read()

    @property
    def connections(self) -> int:
        return self.guard.admission.connections


@asynccontextmanager
async def serving(
    most: int = 100, patience: GuardPatience = SHORT, **tls: str
) -> AsyncIterator[Site]:
    admission = Admission(most=lambda: most, reserve=4)
    guard = Guard(admission, lambda headers, peer, cert: b"authorization" in headers, patience)
    listener = socket.create_server(("127.0.0.1", 0))
    site = Site(guard)
    site.port = listener.getsockname()[1]
    options = {f"tls.{name}": value for name, value in tls.items()}
    server = WebServer(site, listener, load(options={**options, "http.drain": "1s"}), guard=guard)
    await server.start()
    try:
        yield site
    finally:
        await server.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENT):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "request_, status",
    [
        (b"", b""),
        (GET[:9], b"HTTP/1.1 408 "),
        (b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx", b"HTTP/1.1 408 "),
    ],
)
async def test_who_does_not_get_on_is_let_go(request_: bytes, status: bytes) -> None:
    async with serving() as site:
        heard = await site.answer(request_)
        assert heard.startswith(status)
        assert bool(heard) == bool(status)
        await until(lambda: site.connections == 0)


async def test_who_waits_for_an_answer_is_left_alone() -> None:
    async with serving() as site:
        held = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") % b"held"
        assert (await site.answer(held)).startswith(b"HTTP/1.1 200 ")


async def test_who_does_not_read_is_let_go() -> None:
    async with serving() as site:
        async with site.call() as (_, writer):
            cast(asyncio.Transport, writer.transport).pause_reading()
            writer.write(GET % b"large")
            await until(lambda: site.connections == 1)
            await until(lambda: site.connections == 0)
        await asyncio.wait_for(site.over.wait(), PATIENT)


async def test_who_reads_slowly_hears_everything() -> None:
    # A tenth of a second brings more than 256 bytes in a second would.
    async with serving(patience=GuardPatience(unread=0.1)) as site, site.call() as (reader, writer):
        writer.write(GET % b"large")
        came = 0
        while came < 30_000_000:
            await asyncio.sleep(0.01)
            piece = await reader.read(1_000_000)
            assert piece
            came += len(piece)


async def test_a_websocket_stays_and_keeps_its_place() -> None:
    async with serving() as site:
        async with connect(f"ws://127.0.0.1:{site.port}/", compression=None) as websocket:
            await asyncio.sleep(0.5)
            await websocket.send("still here")
            assert await websocket.recv() == "still here"
            assert site.connections == 1
        await until(lambda: site.connections == 0)


async def test_a_websocket_that_is_over_and_does_not_read_is_cut() -> None:
    async with serving() as site, site.call() as (reader, writer):
        writer.write(
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        assert b"101 Switching" in await reader.readuntil(b"\r\n\r\n")
        cast(asyncio.Transport, writer.transport).pause_reading()
        writer.write(b"\x81\x85\0\0\0\0flood")
        await asyncio.wait_for(site.over.wait(), PATIENT)
        await until(lambda: site.connections == 0)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def files(authority: Authority) -> dict[str, Any]:
    return {"cert": str(authority._chain), "key": str(authority._key)}


async def test_a_handshake_has_its_time(authority: Authority) -> None:
    async with serving(**files(authority)) as site:
        async with site.call() as (reader, _):
            await until(lambda: site.connections == 1)
            async with asyncio.timeout(PATIENT):
                await reader.read()
        await until(lambda: site.connections == 0)


async def test_what_is_no_handshake_is_refused(authority: Authority) -> None:
    async with serving(patience=GuardPatience(), **files(authority)) as site:
        await site.answer(GET % b"")
        await until(lambda: site.connections == 0)


async def test_a_shutdown_does_not_wait_for_handshakes(authority: Authority) -> None:
    async with asyncio.timeout(8):
        async with serving(patience=GuardPatience(), **files(authority)) as site:
            caller = socket.create_connection(("127.0.0.1", site.port))
            await until(lambda: site.connections == 1)
        with suppress(ConnectionError):
            assert caller.recv(1) == b""
        caller.close()


async def test_limits_hold_with_tls(authority: Authority) -> None:
    async with serving(**files(authority)) as site:
        tls = authority.client()
        close = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") % b""
        assert (await site.answer(close, tls)).startswith(b"HTTP/1.1 200 ")
        assert (await site.answer(GET[:9], tls)).startswith(b"HTTP/1.1 408 ")
        large = b"GET / HTTP/1.1\r\nA: " + b"x" * 100_000
        assert (await site.answer(large, tls)).startswith(b"HTTP/1.1 431 ")
        await until(lambda: site.connections == 0)
        async with connect(f"wss://localhost:{site.port}/", ssl=tls, compression=None) as websocket:
            await websocket.send("hello")
            assert await websocket.recv() == "hello"
            assert site.connections == 1
        await until(lambda: site.connections == 0)


def _is_over(reader: asyncio.StreamReader) -> bool:
    return reader.at_eof() or reader.exception() is not None


@pytest.mark.parametrize("secure", [False, True])
async def test_health_is_answered_whatever_the_crowd(secure: bool, authority: Authority) -> None:
    tls = authority.client() if secure else None
    more = files(authority) if secure else {}
    async with serving(most=2, patience=GuardPatience(), **more) as site:
        crowd = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(20)]
        # Two are settled, the last four are guests.
        await until(lambda: all(_is_over(reader) for reader, _ in crowd[2:-4]))
        assert site.connections == 6
        assert (await site.answer(GET % b"health", tls)).startswith(b"HTTP/1.1 200 ")
        admin = GET.replace(b"\r\n\r\n", b"\r\nAuthorization: me\r\n\r\n") % b"v1/devices"
        assert (await site.answer(admin, tls)).startswith(b"HTTP/1.1 200 ")
        anybody = await site.answer(GET % b"v1/devices", tls)
        assert anybody.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 10\r\n" in anybody
        assert site.connections <= 6
        for _, writer in crowd:
            writer.close()
        await until(lambda: site.connections == 0)
