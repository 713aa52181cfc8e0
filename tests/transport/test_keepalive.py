"""Requests to one server: connections are kept where the server keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lasthop.transport.http import HttpFailure
from lasthop.transport.keepalive import MOST_IDLE, HttpServer

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"


class Served:
    def __init__(self, port: int) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self.hold = asyncio.Event()
        self.hold.set()
        self.server = HttpServer("127.0.0.1", port, tls=None, limit=100)


@asynccontextmanager
async def serving(answer: bytes) -> AsyncIterator[Served]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                served.requests.append(head + await reader.readexactly(length))
                await served.hold.wait()
                writer.write(answer)
                if answer is LAST:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    served = Served(listener.sockets[0].getsockname()[1])
    try:
        yield served
    finally:
        served.server.close()
        listener.close()


async def test_requests_share_a_connection() -> None:
    async with serving(OK) as served:
        for n in range(5):
            answer = await served.server.post(f"/{n}", "text/plain", b"body")
            assert (answer.status, answer.body) == (200, b"hi")
        assert served.connections == 1
        assert len(served.requests) == 5
        port = served.server._port
        assert (
            served.requests[3]
            == (
                f"POST /3 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                "Content-Type: text/plain\r\nContent-Length: 4\r\n\r\nbody"
            ).encode()
        )


async def test_a_connection_that_the_server_ends_is_not_used_again() -> None:
    async with serving(LAST) as served:
        for _ in range(3):
            await served.server.post("/", "text/plain", b"")
        assert served.connections == 3


async def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    async with serving(OK) as served:
        served.hold.clear()
        posts = [served.server.post("/", "text/plain", b"") for _ in range(MOST_IDLE + 2)]
        asked = asyncio.gather(*posts)
        while len(served.requests) < MOST_IDLE + 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        served.hold.set()
        await asked
        assert served.connections == MOST_IDLE + 2
        assert len(served.server._idle) == MOST_IDLE


@pytest.mark.parametrize(
    "answer, reason",
    [
        (b"SMTP ready\r\n", "not an HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + b"x" * 900, "too large"),
    ],
)
async def test_what_is_no_answer_is_a_failure(answer: bytes, reason: str) -> None:
    async with serving(answer) as served:
        with pytest.raises(HttpFailure, match=reason):
            await served.server.post("/", "text/plain", b"")
        assert served.server._idle == []
