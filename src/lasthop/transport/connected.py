"""Connections of a device over which nothing was said yet: several can be made at once, and the
HELLO goes over one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from lasthop.transport.link import ChannelLink, Ends
from lasthop.wire.hop.frames import Hello

MOST_HELD = 64 * 1024
"""The largest number of bytes that a peer may send before it was spoken to: a CLOSE or a greeting
has far fewer."""

HELLO_TIMEOUT = 30.0
"""Seconds until a connection must have become a link; the handshake has a timeout of its own."""


class HeldConnection:
    """A connection to a gateway that waits for its HELLO."""

    __slots__ = ("_drop", "_say")

    def __init__(
        self,
        say: Callable[[Hello, Ends], Awaitable[ChannelLink]],
        drop: Callable[[], object],
    ) -> None:
        """Wrap a connection: `say` makes a link of it, and `drop` ends it without a word."""
        self._say = say
        self._drop = drop

    async def say(self, hello: Hello, ends: Ends) -> ChannelLink:
        """Send HELLO; the owner is told what follows. Raise OSError if the connection has ended."""
        try:
            async with asyncio.timeout(HELLO_TIMEOUT):
                return await self._say(hello, ends)
        except BaseException:
            self._drop()
            raise

    def drop(self) -> None:
        """End the connection without a word."""
        self._drop()


class EndedTransport(asyncio.Transport):
    """A stand-in for the transport of a connection that has ended, for a protocol that still reads
    what had arrived."""

    def is_closing(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


class HeldStream(asyncio.Protocol):
    """A connected stream that waits for the protocol that will use it."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._ended = False
        self._error: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > MOST_HELD:
            self.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended, self._error = True, exc

    def pass_to(self, protocol: asyncio.Protocol) -> None:
        """Let another protocol go on, with what has arrived until now."""
        transport = self._transport
        assert transport is not None
        if self._ended:
            transport = EndedTransport()
        else:
            transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._received:
            protocol.data_received(bytes(self._received))
        if self._ended:
            protocol.connection_lost(self._error)

    def abort(self) -> None:
        """End the connection at once, whatever has arrived."""
        if self._transport is not None:
            self._transport.abort()
