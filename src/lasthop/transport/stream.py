"""Links over byte streams: TCP, TLS and Unix sockets."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import cast

from lasthop.transport.link import Ends, Link, Machine

HIGH_WATER = 64 * 1024
"""Bytes not taken by the kernel yet before we say that a link is full: what lies here can no longer
expire or be overtaken."""


class StreamLink(Link, asyncio.Protocol):
    """A link that is its own asyncio protocol.

    With `throttle` it does not read while the peer does not: a peer that only asks (PING) would
    otherwise fill our memory with answers. Only one of two ends may do so, or both could wait for
    each other; it is the gateway's.
    """

    __slots__ = ("_throttle", "_transport")

    def __init__(self, ends: Ends, machine: Machine, *, throttle: bool = False) -> None:
        super().__init__(ends, machine, local=False)
        self._throttle = throttle
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        self.local = is_local(self._transport.get_extra_info("peername"))
        self.begin()

    def data_received(self, data: bytes) -> None:
        self.arrived(data)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.ended(str(exc) if exc is not None else "the peer hung up")

    def pause_writing(self) -> None:
        if self._throttle and self._transport is not None:
            self._transport.pause_reading()
        self.full(True)

    def resume_writing(self) -> None:
        if self._throttle and self._transport is not None:
            self._transport.resume_reading()
        self.full(False)

    def write(self, units: list[bytes]) -> None:
        if self._transport is not None:
            self._transport.write(units[0] if len(units) == 1 else b"".join(units))

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def is_local(peer: object) -> bool:
    """Whether a socket's peer is on this machine; a Unix socket's always is."""
    if isinstance(peer, str | bytes):
        return True
    if not isinstance(peer, tuple) or not peer:
        return peer is None
    try:
        address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
