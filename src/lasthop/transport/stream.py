"""Links over byte streams: TCP, TLS and Unix sockets."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import cast

from lasthop.transport.link import ChannelLink, Ends, Machine
from lasthop.transport.locality import is_local

HIGH_WATER = 64 * 1024
"""Bytes that the kernel has not accepted yet, from which a link counts as full: what waits here can
no longer expire or be overtaken."""

UNSENT = 16 * 1024
"""The largest number of bytes that the kernel may hold unsent on a link that carries pieces: one
piece."""

SLICE = 16 * 1024
"""The largest number of bytes that are handled at a time. A read may bring sixteen times as much,
which is 40,000 of the smallest messages and half a second; between two slices other work has its
turn."""


class StreamLink(ChannelLink, asyncio.Protocol):
    """A link that is its own asyncio protocol.

    With `throttle` the link does not read while the peer does not: a peer that only sends PING
    would otherwise fill our memory with answers. Only one of two ends may throttle, or both could
    wait for each other; it is the gateway's.
    """

    __slots__ = ("_full", "_slices", "_throttle", "_transport", "_watching")

    def __init__(self, ends: Ends, machine: Machine, *, throttle: bool = False) -> None:
        super().__init__(ends, machine, local=False)
        self._throttle = throttle
        self._transport: asyncio.Transport | None = None
        self._watching = False
        self._full = False
        self._slices: deque[bytes] | None = None
        """The slices of the last read that are still to be handled; nothing is read meanwhile."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        self.local = is_local(self._transport.get_extra_info("peername"))
        self.begin()

    def data_received(self, data: bytes) -> None:
        if len(data) <= SLICE and self._slices is None:
            self.arrived(data)
            return
        slices = [data[at : at + SLICE] for at in range(0, len(data), SLICE)]
        if self._slices is not None:
            self._slices.extend(slices)  # Read before `pause_reading` took effect.
            return
        self._slices = deque(slices)
        if self._transport is not None:
            self._transport.pause_reading()
        self._take_slice()

    def _take_slice(self) -> None:
        slices = self._slices
        if not slices or self._transport is None:
            return  # The link has ended: the rest is not acknowledged, and the peer sends it again.
        self.arrived(slices.popleft())
        if slices:
            asyncio.get_running_loop().call_soon(self._take_slice)
            return
        self._slices = None
        self._read_again()

    def _read_again(self) -> None:
        transport = self._transport
        held = self._slices is not None or (self._throttle and self._full)
        if transport is not None and not transport.is_closing() and not held:
            transport.resume_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.ended(str(exc) if exc is not None else "the peer hung up")

    def pause_writing(self) -> None:
        if not self._watching:
            self._set_full(True)

    def resume_writing(self) -> None:
        watching, self._watching = self._watching, False
        if watching and self._transport is not None:
            self._transport.set_write_buffer_limits(high=HIGH_WATER)
        if self._full:
            self._set_full(False)
        self.look_drained()

    def _set_full(self, full: bool) -> None:
        self._full = full
        if self._throttle and self._transport is not None:
            if full:
                self._transport.pause_reading()
            else:
                self._read_again()
        self.full(full)

    @property
    def unsent(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def report_drained(self) -> None:
        super().report_drained()
        transport = self._transport
        if transport is None:
            return
        _keep_short(transport)
        if self.unsent and not self._full and not self._watching:
            # With limits of 0, writing is paused until the buffer is empty, and its resumption
            # reports that.
            self._watching = True
            transport.set_write_buffer_limits(high=0)

    def write(self, units: list[bytes]) -> None:
        transport = self._transport
        if transport is not None:
            transport.write(units[0] if len(units) == 1 else b"".join(units))
            if self._watching and not self._full:
                self._watch_level(transport)

    def _watch_level(self, transport: asyncio.Transport) -> None:
        if transport.get_write_buffer_size() > HIGH_WATER:
            self._set_full(True)

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _keep_short(transport: asyncio.Transport) -> None:
    """Limit what the kernel holds unsent, because nothing can overtake it there."""
    sock = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if sock is None or option is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    if sock.getsockopt(socket.IPPROTO_TCP, option) != UNSENT:
        sock.setsockopt(socket.IPPROTO_TCP, option, UNSENT)
