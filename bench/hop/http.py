"""A compact HTTP/1.1 publisher: keep-alive connections, a few requests in flight on each.

It reads only answers with a Content-Length; any status but a 2xx ends the run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from bench.hop.link import Link


class Refused(Exception):
    """The gateway did not accept a request."""


class Connection(Link):
    """One connection; requests on it are answered in order."""

    def __init__(self, head: bytes) -> None:
        super().__init__()
        self._head = head
        self._rest = b""
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def in_flight(self) -> int:
        """Return the number of requests that have no answer yet."""
        return len(self._waiting)

    def post(self, body: bytes) -> asyncio.Future[None]:
        """Send a request; the returned future is done when the request was accepted."""
        answered: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(answered)
        self.transport.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
        return answered

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        while True:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                break
            size = content_length(data[:end])
            if len(data) < end + 4 + size:
                break
            answer, data = data[: end + 4 + size], data[end + 4 + size :]
            waiting = self._waiting.popleft()
            if answer[9:10] == b"2":
                waiting.set_result(None)
            else:
                waiting.set_exception(Refused(answer.decode(errors="replace")))
        self._rest = data

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        while self._waiting:
            self._waiting.popleft().set_exception(Refused(f"connection lost: {exc}"))


def content_length(head: bytes) -> int:
    """Return the length of the body that follows a response's head.

    >>> content_length(b"HTTP/1.1 202 Accepted\\r\\nContent-Length: 12")
    12
    """
    lowered = head.lower()
    at = lowered.find(b"\r\ncontent-length:")
    if at < 0:
        raise Refused("an answer without Content-Length")
    return int(lowered[at + 17 :].split(b"\r\n", 1)[0])


def request_head(path: str, *, content_type: str) -> bytes:
    """Return the head of a POST up to the value of its Content-Length."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {content_type}\r\n"
        "Content-Length: "
    ).encode()


class Pool:
    """Several connections that share the requests.

    A server closes connections that were idle for some seconds; `fill` opens those again.
    """

    def __init__(self, head: bytes, *, size: int) -> None:
        self._head = head
        self._size = size
        self._connections: deque[Connection] = deque()

    async def fill(self, port: int) -> None:
        """Open the connections that are not open."""
        self._connections = deque(c for c in self._connections if not c.lost)
        while len(self._connections) < self._size:
            connection = Connection(self._head)
            await connection.dial(port)
            self._connections.append(connection)

    def post(self, body: bytes) -> asyncio.Future[None]:
        """Send on the next connection, preferably on one that has nothing in flight."""
        chosen = None
        for _ in range(len(self._connections)):
            connection = self._connections[0]
            self._connections.rotate(-1)
            if not connection.lost and (chosen is None or connection.in_flight < chosen.in_flight):
                chosen = connection
                if not chosen.in_flight:
                    break
        if chosen is None:
            raise Refused("all connections were closed")
        return chosen.post(body)

    async def post_all(self, bodies: Sequence[bytes]) -> None:
        """Send all bodies, one request in flight on every connection; connection k of n sends every
        n-th body, so that order can be checked for each lane."""
        lanes = len(self._connections)

        async def work(lane: int, connection: Connection) -> None:
            for body in bodies[lane::lanes]:
                await connection.post(body)

        await asyncio.gather(*(work(k, c) for k, c in enumerate(self._connections)))
