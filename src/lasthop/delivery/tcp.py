"""The listener for devices that connect by TCP, with TLS or without, or over a Unix socket."""

from __future__ import annotations

import asyncio
import socket
import ssl

from lasthop.clock import Clock
from lasthop.delivery.channel import Switchboard
from lasthop.delivery.listener import MAX_CONNECTIONS, Listener
from lasthop.transport.stream import StreamLink
from lasthop.wire.hop.mapping import Mapping

TLS_HANDSHAKE = 10.0
"""Seconds for a TLS handshake, as for HELLO: an unknown peer holds a socket of the gateway no
longer."""

BACKLOG = 4096
"""Connections that may wait to be accepted: devices come back all at once after a restart, and the
kernel caps this at its own limit."""


class TcpListener(Listener):
    """Listens on a TCP or Unix socket for devices."""

    def __init__(
        self,
        switchboard: Switchboard,
        *,
        clock: Clock,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        super().__init__(
            switchboard, clock=clock, mapping=Mapping.STREAM, max_connections=max_connections
        )
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket, *, tls: ssl.SSLContext | None = None) -> None:
        """Accept connections from a bound socket, TCP or Unix."""
        loop = asyncio.get_running_loop()
        unix = listener.family == socket.AF_UNIX
        make = loop.create_unix_server if unix else loop.create_server
        self._server = await make(
            self._accept,
            sock=listener,
            ssl=tls,
            backlog=BACKLOG,
            ssl_handshake_timeout=TLS_HANDSHAKE if tls is not None else None,
        )

    async def stop(self) -> None:
        """Accept no more connections, and close those that are open."""
        if self._server is not None:
            self._server.close()
        self.close_all()

    def _accept(self) -> StreamLink:
        return StreamLink(self._ends, self.machine(), throttle=True)
