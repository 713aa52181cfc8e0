"""Emulates a bad link over real sockets: connections to the link's port are forwarded to the
gateway's port, slowly, until they break.

Nothing here knows the hop protocol. Bytes are forwarded in order, after a delay (`pace`); an outage
begins with silence, then resets open connections and refuses new ones.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self, cast

from lasthop.runtime.demo.pace import DirectionPace
from lasthop.runtime.demo.profiles import LinkProfile

MOST_UNDER_WAY = 64 << 10
"""The largest number of bytes under way in one direction of a connection. When there are more,
nothing is read from the sender, as if the buffers of a network were full."""

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of zero: closing sends a reset instead of a FIN."""


class EmulatedLink:
    """One emulated link: a listener with one profile. Usable as a context manager."""

    def __init__(
        self,
        profile: LinkProfile,
        target: tuple[str, int],
        *,
        random: Callable[[], float],
    ) -> None:
        self.profile = profile
        self._target = target
        self._random = random
        self._server: asyncio.Server | None = None
        self._open: set[LinkHalf] = set()
        self._dialling: set[asyncio.Task[None]] = set()
        self._silent = False
        self._down = False
        self._breaking: asyncio.TimerHandle | None = None
        self.up_bytes = 0
        """The number of bytes passed on to the gateway."""
        self.down_bytes = 0
        """The number of bytes passed on to the device."""
        self.resets = 0
        """The number of connections that an outage broke."""
        self.refused = 0
        """The number of connections that were refused during an outage."""

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: LinkHalf(self, None), "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        if self._breaking is not None:
            self._breaking.cancel()
        for task in list(self._dialling):
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        for half in list(self._open):
            half.reset()
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        """The port to which devices connect."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """The URL to which devices connect, for the SDK."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def away(self) -> bool:
        """Whether the link has an outage now."""
        return self._silent or self._down

    def lose(self) -> None:
        """Begin an outage: silence at first, then all connections are reset."""
        if self.away:
            return
        self._silent = True
        loop = asyncio.get_running_loop()
        self._breaking = loop.call_later(self.profile.silence, self._break)

    def _break(self) -> None:
        self._breaking = None
        self._silent, self._down = False, True
        for half in list(self._open):
            if half.from_device:
                self.resets += 1
            half.reset()

    def restore(self) -> None:
        """End the outage. If it was only a short silence, the waiting bytes are passed on."""
        if self._breaking is not None:
            self._breaking.cancel()
            self._breaking = None
        self._silent = self._down = False
        for half in list(self._open):
            half.pump()

    @property
    def holds(self) -> bool:
        """Whether bytes are held back, because an outage has begun with silence."""
        return self._silent

    def admits(self) -> bool:
        """Whether a new connection is accepted; refused connections are counted."""
        if self._down:
            self.refused += 1
        return not self._down

    def joined(self, half: LinkHalf) -> None:
        self._open.add(half)

    def left(self, half: LinkHalf) -> None:
        self._open.discard(half)

    def pace(self) -> DirectionPace:
        return DirectionPace(self.profile, self._random)

    def altered(self, data: bytes) -> bytes:
        """Return what arrives of these bytes; on a link that damages nothing, the bytes."""
        return data

    def cut(self) -> int:
        """Reset all connections, and return how many sockets that were; new ones are accepted at
        once."""
        cut = list(self._open)
        for half in cut:
            half.reset()
        return len(cut)

    def half_close(self, *, towards_device: bool) -> int:
        """End one direction of all connections, and return how many those were; the other
        direction stays open."""
        ended = [half for half in self._open if half.from_device is towards_device]
        for half in ended:
            half.end_output()
        return len(ended)

    def dial(self, half: LinkHalf) -> None:
        """Connect to the gateway for a device that has connected."""
        task = asyncio.get_running_loop().create_task(self._dial(half))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)

    async def _dial(self, half: LinkHalf) -> None:
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: LinkHalf(self, half), *self._target
            )
        except OSError:
            half.reset()


class LinkHalf(asyncio.Protocol):
    """One of the two sockets of a connection; what it receives is sent by the other one."""

    def __init__(self, link: EmulatedLink, other: LinkHalf | None) -> None:
        self._link = link
        self._pace = link.pace()
        self.from_device = other is None
        self.other = other
        if other is not None:
            other.other = self
        self._transport: asyncio.Transport | None = None
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        """Whether the sender has closed: the other side is closed after the last byte."""
        self._output_ended = False
        """Whether this socket sends no more, though its peer has not closed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._link.admits():
            self.reset()
            return
        self._link.joined(self)
        if self.other is None:
            self._link.dial(self)
        elif self.other._transport is None:
            self.reset()  # The device has disconnected in the meantime.
        else:
            self.other.pump()

    def data_received(self, data: bytes) -> None:
        now = asyncio.get_running_loop().time()
        data = self._link.altered(data)
        self._under_way.append((self._pace.leaves(len(data), now), data))
        self._waiting += len(data)
        if self._waiting > MOST_UNDER_WAY and self._transport is not None:
            self._transport.pause_reading()
        self.pump()

    def eof_received(self) -> bool:
        self._ended = True
        self.pump()
        return True  # The other direction may have more to send.

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._link.left(self)
        self._cancel()
        if self.other is not None:
            self.other.reset() if exc is not None else self.other._close()

    def pump(self) -> None:
        """Pass on the bytes that are due, and set a timer for the rest."""
        self._cancel()
        other = self.other
        if other is None or other._transport is None or self._link.holds:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._under_way and self._under_way[0][0] <= now:
            _, data = self._under_way.popleft()
            self._waiting -= len(data)
            if not other._output_ended:
                other._transport.write(data)
            if self.from_device:
                self._link.up_bytes += len(data)
            else:
                self._link.down_bytes += len(data)
        if self._waiting <= MOST_UNDER_WAY and self._transport is not None:
            self._transport.resume_reading()
        if self._under_way:
            self._timer = loop.call_at(self._under_way[0][0], self.pump)
        elif self._ended:
            other._close()

    def reset(self) -> None:
        """End this connection by a reset, as a broken link does."""
        if self._transport is not None:
            sock = cast(socket.socket, self._transport.get_extra_info("socket"))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()

    def end_output(self) -> None:
        """Tell the peer of this socket that nothing more comes, and drop what does."""
        if self._transport is not None and not self._output_ended:
            self._output_ended = True
            self._transport.write_eof()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
