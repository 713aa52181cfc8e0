"""Connections that a peer resets at every stage of a request, on both event loops: whoever asked
hears of it as of any lost connection. On a transport that is closed already uvloop raises a
RuntimeError where asyncio raises an OSError.

About `transport/http.py` and `transport/keepalive.py`.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from lasthop.transport.address import parse
from lasthop.transport.dial import dial
from lasthop.transport.http import HttpFailure, post
from lasthop.transport.keepalive import HttpServer
from lasthop.wire.hop.frames import Hello
from tests.delivery.board import until
from tests.transport.hand import Diary, HandClock, ends

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
BODY = bytes(1 << 20)
"""More than the buffers of loopback take, so that a request is still being written."""
RESET = struct.pack("ii", 1, 0)


class Stage(Enum):
    """When the peer resets."""

    ACCEPTED = "before the request"
    READING = "in the middle of the request"
    HELD = "while the request is held"
    ANSWERING = "in the middle of the answer"
    IDLE = "between two requests"


STAGES = [pytest.param(stage, id=stage.name.lower()) for stage in Stage]


@pytest.fixture(params=[True, False], ids=["uvloop", "asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


class Peer:
    """A server that resets its connections at one stage, as long as it is told to."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.friendly = False
        self.port = 0
        self.connections = 0
        self.serving: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self.serve(reader, writer))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while not self._reached(Stage.ACCEPTED):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                if self._reached(Stage.READING):
                    break
                await reader.readexactly(length)
                if self._reached(Stage.HELD):
                    break
                if self._reached(Stage.ANSWERING):
                    writer.write(OK[:-1])
                    await writer.drain()
                    break
                writer.write(OK)
                await writer.drain()
                if self._reached(Stage.IDLE):
                    break
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            if not self.friendly:
                sock: socket.socket = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()

    def _reached(self, stage: Stage) -> bool:
        return self.stage is stage and not self.friendly


@asynccontextmanager
async def resetting(stage: Stage) -> AsyncIterator[Peer]:
    peer = Peer(stage)
    listener = await asyncio.start_server(peer.accept, "127.0.0.1", 0)
    peer.port = listener.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        listener.close()
        for task in peer.serving:
            task.cancel()
        await asyncio.sleep(0.01)


async def noticed(server: HttpServer) -> None:
    """Until the end of every connection that is kept has been heard of."""
    await until(lambda: all(reader.exception() is not None for reader, _ in server._idle))
    await asyncio.sleep(0)


@pytest.mark.parametrize("stage", STAGES)
async def test_a_request_to_a_server_that_resets_is_a_lost_connection(stage: Stage) -> None:
    async with resetting(stage) as peer:
        server = HttpServer("127.0.0.1", peer.port, tls=None, limit=100)
        for _ in range(20):
            async with asyncio.timeout(5):
                if stage is not Stage.IDLE:
                    with pytest.raises((ConnectionError, HttpFailure)):
                        await server.post("/", "text/plain", BODY)
                    continue
                answer = await server.post("/", "text/plain", BODY)
                assert answer.body == b"hi"
                await noticed(server)
        server.close()


async def test_a_kept_connection_that_was_reset_is_not_asked_again() -> None:
    async with resetting(Stage.IDLE) as peer:
        server = HttpServer("127.0.0.1", peer.port, tls=None, limit=100)
        posts = [server.post("/", "text/plain", b"") for _ in range(3)]
        await asyncio.gather(*posts)
        await noticed(server)
        peer.friendly = True
        for _ in range(4):
            assert (await server.post("/", "text/plain", b"")).body == b"hi"
        assert peer.connections == 4, "one new connection, which was kept"
        server.close()


async def test_a_connection_that_ended_before_it_was_written_to_says_so() -> None:
    async with resetting(Stage.HELD) as peer:
        server = HttpServer("127.0.0.1", peer.port, tls=None, limit=100)
        connect = server._connect

        async def connect_slowly() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await connect()
            writer.transport.abort()
            await asyncio.sleep(0.01)
            return reader, writer

        server._connect = connect_slowly  # type: ignore[method-assign]
        with pytest.raises(ConnectionError):
            await server.post("/", "text/plain", BODY)


async def test_a_websocket_that_ended_before_its_handshake_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handshake = ClientConnection.handshake

    async def too_late(self: ClientConnection, *arguments: Any, **named: Any) -> None:
        self.transport.abort()
        await asyncio.sleep(0.01)
        await handshake(self, *arguments, **named)

    monkeypatch.setattr(ClientConnection, "handshake", too_late)
    async with resetting(Stage.HELD) as peer:
        address = parse(f"ws://127.0.0.1:{peer.port}/hop")
        with pytest.raises(ConnectionError, match="there is no WebSocket"):
            await dial(address, Hello(app="shop", device="phone"), ends(Diary(), HandClock()))


@pytest.mark.parametrize("stage", STAGES)
async def test_a_post_to_a_server_that_resets_is_a_failure(stage: Stage) -> None:
    async with resetting(stage) as peer:
        url = f"http://127.0.0.1:{peer.port}/"
        for _ in range(10):
            if stage is Stage.IDLE:
                answer = await post(url, (), BODY, timeout=5, limit=100)
                assert answer.body == b"hi"
            else:
                with pytest.raises(HttpFailure, match=r"^(?!no answer in)"):
                    await post(url, (), BODY, timeout=5, limit=100)


@pytest.mark.parametrize("scheme", ["tcp", "ws", "http", "beep"])
async def test_a_gateway_that_resets_whoever_dials_is_one_that_is_not_there(scheme: str) -> None:
    async with resetting(Stage.ACCEPTED) as peer:
        for _ in range(10):
            diary, clock = Diary(), HandClock()
            path = "/hop" if scheme in ("ws", "http") else ""
            address = parse(f"{scheme}://127.0.0.1:{peer.port}{path}")
            try:
                await dial(address, Hello(app="shop", device="phone"), ends(diary, clock))
            except OSError:
                continue
            assert scheme == "tcp"
            await until(lambda diary=diary: bool(diary.ends))  # type: ignore[misc]
