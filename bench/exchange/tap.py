"""A tap on a device's link, which forwards and records what both sides send.

The stream does not show what TCP and IP add: the kernel is asked for the number of segments on the
connection between the tap and the device.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from asyncio.trsock import TransportSocket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

_SEGMENTS_AT: Final = 136
"""The offset in `tcp_info` (linux/tcp.h) of the segments sent; those received follow."""


class Tap:
    """Records both directions of the one connection that a device has."""

    def __init__(self, gateway: int) -> None:
        self._gateway = gateway
        self.to_device = bytearray()
        self.from_device = bytearray()
        self.port = 0
        self._device: TransportSocket | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._idle = asyncio.Event()

    def segments(self) -> int:
        """Return the TCP segments between the tap and the device so far, both ways, empty ones
        included."""
        if self._device is None:
            return 0
        told = self._device.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SEGMENTS_AT + 8)
        sent, received = struct.unpack_from("=II", told, _SEGMENTS_AT)
        return int(sent + received)

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward between a device that has connected and the gateway, until one of them closes."""
        self._device = writer.get_extra_info("socket")
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._gateway)
        both = (writer, up_writer)
        self._open |= set(both)
        await asyncio.gather(
            _pass_on(reader, up_writer, self.from_device),
            _pass_on(up_reader, writer, self.to_device),
        )
        self._device = None
        for end in both:
            with suppress(OSError):
                await end.wait_closed()
        self._open -= set(both)
        self._idle.set()

    async def hang_up(self) -> None:
        """Close the open connections."""
        for end in self._open:
            end.close()
        if self._open:
            await self._idle.wait()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray
) -> None:
    with suppress(OSError):  # A connection that ended with an error is closed too.
        while data := await reader.read(1 << 16):
            kept += data
            writer.write(data)
    writer.close()


@asynccontextmanager
async def tapped(gateway: int) -> AsyncIterator[Tap]:
    """Listen on a port of the system's choice for a device of the gateway on port `gateway`."""
    tap = Tap(gateway)
    server = await asyncio.start_server(tap.connect, "127.0.0.1", 0)
    tap.port = server.sockets[0].getsockname()[1]
    try:
        yield tap
    finally:
        server.close()
        await tap.hang_up()
