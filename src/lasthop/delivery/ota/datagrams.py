"""UDP for carriers: one socket for each family of addresses, opened when it is first needed."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import cast

MAX_DATAGRAM = 65_507
"""The largest number of octets in a datagram: what IPv4 leaves of 64 KiB. Larger pushes need a
session, which can segment."""

Endpoint = tuple[str, int]
Received = Callable[[bytes, Endpoint], None]


class Datagrams(asyncio.DatagramProtocol):
    """One UDP socket. Datagrams that the kernel does not accept at once wait here, in order."""

    def __init__(self, received: Received | None = None) -> None:
        self.received = received
        self._transport: asyncio.DatagramTransport | None = None
        self._waiting: deque[tuple[bytes, Endpoint]] = deque()
        self._paused = False

    @classmethod
    async def open(cls, sock: socket.socket, received: Received | None = None) -> Datagrams:
        """Return a `Datagrams` that owns this bound socket; `received` is called with each datagram
        that arrives."""
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_datagram_endpoint(lambda: cls(received), sock=sock)
        return protocol

    def send(self, data: bytes, to: Endpoint) -> None:
        """Hand a datagram to the network, which may lose it."""
        if self._transport is None or self._paused:
            self._waiting.append((data, to))
        else:
            self._transport.sendto(data, to)

    def close(self) -> None:
        """Drop the datagrams that wait, and close the socket."""
        self._waiting.clear()
        if self._transport is not None:
            self._transport.close()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self.received is not None:
            self.received(data, (addr[0], addr[1]))

    def error_received(self, exc: Exception) -> None:
        """Ignore a closed port or a network that is down: over UDP that is a loss like any
        other."""

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        while self._waiting and not self._paused:
            self.send(*self._waiting.popleft())


def bound(host: str, port: int) -> socket.socket:
    """Return a UDP socket that is bound to a local address; raise OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


BUFFER = 1 << 20
"""The socket's buffer in bytes, each way, so that a burst of pushes is not lost before it is sent;
the kernel may give less."""
