"""A TCP connection of a benchmark client: raw protocol, no streams, and an end that is noticed."""

from __future__ import annotations

import asyncio
import socket
from abc import ABC, abstractmethod
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Lost(Exception):
    """The other side has closed the connection."""


class Guard(ABC):
    """Base of the clients. Code that waits through `guard` gets an exception when the connection
    ends."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[None] = self._loop.create_future()

    def end(self, reason: str) -> None:
        """Note that the connection has ended, with the reason."""
        if not self._lost.done():
            self._lost.set_exception(Lost(reason))
            self._lost.exception()

    @property
    def lost(self) -> bool:
        """Whether the connection has ended."""
        return self._lost.done()

    async def guard(self, future: asyncio.Future[T]) -> T:
        """Return the result of `future`; raise `Lost` if the connection ends first."""
        both: set[asyncio.Future[Any]] = {future, self._lost}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            future.cancel()
            self._lost.result()
        return future.result()

    @abstractmethod
    def hang_up(self) -> None:
        """Close the connection without a goodbye."""


class Link(Guard, asyncio.Protocol):
    """A client that implements its protocol itself."""

    transport: asyncio.Transport

    async def dial(self, port: int, *, source: str | None = None) -> None:
        """Connect over loopback; from a given source address if one process needs more ports than
        one address has."""
        await self._loop.create_connection(
            lambda: self, "127.0.0.1", port, local_addr=(source, 0) if source else None
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        sock: socket.socket = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Buffer a whole window: a client that stopped reading while it waits would stall its
        # broker.
        self.transport.set_write_buffer_limits(high=64 << 20)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(str(exc or "closed by the peer"))

    def hang_up(self) -> None:
        self.transport.close()
