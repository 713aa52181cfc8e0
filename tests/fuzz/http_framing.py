"""Fuzzes the framing of HTTP requests, on the path without ASGI and on that with ASGI.

About `runtime/guard.py`, `runtime/direct.py` and `runtime/proxies.py`. The parser below them is C:
its coverage is not seen, and a second parser, h11, says whether both find the same requests.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import h11

from lasthop.access.direct import Request, Response
from lasthop.runtime.guard import PIECE
from tests.runtime.wires import ANSWER, PEER, Connection, post

TURNS: Final = 8
"""Turns of the event loop after the last byte: an answer takes three."""


class Framed(NamedTuple):
    """One request as a server understood it."""

    method: str
    target: bytes
    body: bytes


class FuzzedConnection(Connection):
    """A connection that answers at once and notes every request."""

    def __init__(self, *, proxies: tuple[str, ...]) -> None:
        self.requests: list[Framed] = []
        """The requests in the order of their heads; a body may still be arriving."""
        super().__init__(proxies=proxies)

    def take(self, request: Request, respond: Callable[[Response], None]) -> None:
        self.requests.append(Framed("POST", b"/door", request.body))
        respond(ANSWER)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await super().app(scope, receive, send)
            return
        target = scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        number = len(self.requests)
        self.requests.append(Framed(scope["method"], target, b""))
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.requests[number] = Framed(scope["method"], target, b"(incomplete)")
                return
            body += message["body"]
            more = message["more_body"]
        self.requests[number] = Framed(scope["method"], target, body)
        length = (b"content-length", b"2")
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": b"ok"})


class Served(NamedTuple):
    """What became of the bytes of one connection."""

    requests: list[Framed]
    heard: bytes
    """What the client gets."""
    refused: dict[str, int]


def http(data: bytes) -> None:
    """The first byte says how the rest is cut and whether it comes from a trusted proxy. However it
    is cut, it means the same; and what h11 understands too, it understands in the same way."""
    how, data = (data[0] if data else 0), data[1 : 1 + PIECE]
    proxies = (PEER,) if how & 0x80 else ()
    whole, cut = _runner().run(_both(data, 1 + (how & 0x7F), proxies))
    assert whole == cut, (whole, cut)
    if not whole.refused:
        _compare(whole.requests, _by_h11(data))


@cache
def _runner() -> asyncio.Runner:
    """One event loop for all inputs: a new one takes longer than an input."""
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


async def _both(data: bytes, piece: int, proxies: tuple[str, ...]) -> tuple[Served, Served]:
    return (
        await _served(data, max(1, len(data)), proxies),
        await _served(data, piece, proxies),
    )


async def _served(data: bytes, piece: int, proxies: tuple[str, ...]) -> Served:
    connection = FuzzedConnection(proxies=proxies)
    for at in range(0, len(data), piece):
        if connection.wire.closed:
            break
        receiver: Any = connection.wire.get_protocol()
        receiver.data_received(data[at : at + piece])
    for _ in range(TURNS):
        await asyncio.sleep(0)
    heard = b"".join(connection.wire.written)
    assert not heard or heard.startswith(b"HTTP/1.1 "), heard
    assert heard.count(b"HTTP/1.1 ") >= len(connection.guard.refused) or connection.wire.closed
    receiver = connection.wire.get_protocol()
    receiver.connection_lost(None)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"tasks go on after the end: {left}"
    assert not connection.time.alarms, "a timer goes on after the end"
    assert connection.guard.admission.connections == 0
    upgraded = receiver is not connection.protocol
    return Served(connection.requests, b"" if upgraded else heard, dict(connection.guard.refused))


def _by_h11(data: bytes) -> list[Framed]:
    """The complete requests that h11 finds, until it refuses one."""
    found: list[Framed] = []
    peer = h11.Connection(h11.SERVER, max_incomplete_event_size=2 * PIECE)
    try:
        peer.receive_data(data)
        while True:
            request = peer.next_event()
            if not isinstance(request, h11.Request):
                return found
            body = b""
            while isinstance(event := peer.next_event(), h11.Data):
                body += bytes(event.data)
            if not isinstance(event, h11.EndOfMessage):
                return found
            found.append(Framed(request.method.decode(), request.target, body))
            if peer.their_state is not h11.DONE or event.headers:
                return found
            peer.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            peer.send(h11.EndOfMessage())
            if peer.our_state is not h11.DONE:
                return found
            peer.start_next_cycle()
    except h11.RemoteProtocolError:
        return found


def _compare(ours: list[Framed], theirs: list[Framed]) -> None:
    """Of two parsers that understand a request, none may see another body or another request:
    otherwise one of them could be made to take a body for a request."""
    for mine, other in zip(ours, theirs, strict=False):
        if mine.body == b"(incomplete)":
            return
        # In the absolute form and before a fragment, only a part of the target is the path.
        if other.target.startswith(b"/") and b"#" not in other.target:
            assert mine.target == other.target, (mine, other)
        assert (mine.method, mine.body) == (other.method, other.body), (mine, other)


def http_seeds() -> Iterator[bytes]:
    get = b"GET /news?x=%41 HTTP/1.1\r\nHost: x\r\n\r\n"
    plain = post(b'{"to":"device:phone"}', "Content-Type: application/json")
    chunked = (
        b"POST /door HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5;a=b\r\nhello\r\n0\r\nTrailer: t\r\n\r\n"
    )
    yield b"\x06" + plain
    yield b"\x13" + get + plain + get
    yield b"\x02" + chunked + get
    yield b"\x30" + post(b"x" * 200, "Expect: 100-continue", path="/pap")
    yield b"\x20" + post(b"", "Connection: close") + get
    yield b"\x21" + post(b"ab", version="1.0") + get
    yield b"\x87" + post(b"ab", "Forwarded: for=203.0.113.9;proto=https", "X-Forwarded-For: ::1")
    yield b"\x87" + post(b"ab", "X-Forwarded-For: 203.0.113.9, 10.0.0.1", "X-Forwarded-Proto: ws")
    yield (
        b"\x2aGET /hop HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        b"\x82\x84\x00\x00\x00\x00unit"
    )
    yield b"\x11POST /door HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 1\r\n\r\nx"
    yield b"\x11POST /door HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx"
