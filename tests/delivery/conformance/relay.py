"""Between a device and a gateway: passes bytes on, and resets a connection after a certain byte."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol, cast

UP, DOWN = "up", "down"
_LINGER = struct.pack("ii", 1, 0)


class Damage(Protocol):
    """What a bad link does to one direction of one connection."""

    def __call__(self, data: bytes) -> tuple[bytes, bool]:
        """What arrives of this, and whether the connection is then reset."""
        ...


class Relay:
    """Passes connections on to a port; `cut_after` bytes in one `direction`, counted over all
    connections, it resets the one that they went over. Once."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.passed: Counter[str] = Counter()
        self.direction = UP
        self.cut_after: int | None = None
        self.cuts = 0
        self.damage: Callable[[str], Damage] | None = None
        """Makes the damage of each direction of a connection."""
        self.connections: set[_Half] = set()
        self.connecting: set[asyncio.Task[None]] = set()

    def expect(self, direction: str, cut_after: int | None) -> None:
        """Begin to count anew."""
        self.passed.clear()
        self.direction, self.cut_after = direction, cut_after

    def reset_all(self) -> None:
        """Reset every connection that a device has open."""
        for half in list(self.connections):
            if half.direction == UP:
                half.reset()

    def admit(self, direction: str, data: bytes) -> tuple[bytes, bool]:
        """What passes of this, and whether the connection is then reset."""
        if direction == self.direction and self.cut_after is not None:
            left = self.cut_after - self.passed[direction]
            if len(data) >= left:
                self.cut_after = None
                self.cuts += 1
                return data[:left], True
        self.passed[direction] += len(data)
        return data, False


class _Half(asyncio.Protocol):
    """One of the two sockets of a connection."""

    def __init__(self, relay: Relay, direction: str, other: _Half | None) -> None:
        self._relay = relay
        self.direction = direction
        """Of what arrives here."""
        self.other = other
        self.transport: asyncio.Transport | None = None
        self._early: list[bytes] = []
        self._damage = relay.damage(direction) if relay.damage is not None else None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._relay.connections.add(self)
        if self.other is None:
            task = asyncio.get_running_loop().create_task(self._connect())
            self._relay.connecting.add(task)
            task.add_done_callback(self._relay.connecting.discard)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, self.other = await loop.create_connection(
                lambda: _Half(self._relay, DOWN, self), "127.0.0.1", self._relay.port
            )
        except OSError:
            self.reset()
            return
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
            return
        if self._damage is not None:
            data, cut = self._damage(data)
        else:
            data, cut = self._relay.admit(self.direction, data)
        if data and self.other.transport is not None:
            self.other.transport.write(data)
        if cut:
            # What passed before the break still arrives, so it is at exactly this byte.
            self.reset()
            if self.other.transport is not None:
                self.other.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._relay.connections.discard(self)
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()

    def reset(self) -> None:
        """End with a reset, not with a goodbye."""
        if self.transport is not None:
            sock: socket.socket = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
            self.transport.abort()


@asynccontextmanager
async def relaying(port: int) -> AsyncIterator[tuple[Relay, int]]:
    """A relay to this port, and its own."""
    relay = Relay(port)
    server = await asyncio.get_running_loop().create_server(
        lambda: _Half(relay, UP, None), "127.0.0.1", 0
    )
    try:
        yield relay, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for half in list(relay.connections):
            if half.transport is not None:
                half.transport.abort()
