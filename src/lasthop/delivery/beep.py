"""The listener for devices that connect by BEEP, with TLS or without."""

from __future__ import annotations

import asyncio
import socket
import ssl

from lasthop.clock import SECOND, Clock
from lasthop.delivery.channel import Switchboard
from lasthop.delivery.listener import MAX_CONNECTIONS, Listener
from lasthop.delivery.tcp import BACKLOG, TLS_HANDSHAKE
from lasthop.transport.beep import BeepConnection
from lasthop.wire.hop.frames import MAX_HANDSHAKE
from lasthop.wire.hop.handshake import WAIT_FOR_HELLO
from lasthop.wire.hop.mapping import Mapping

STRANGERS = 100
"""How many connections beyond the limit may still start a channel, so that their devices can be
told when to come back."""


class _Connection(BeepConnection):
    """A BEEP connection, which the listener counts for as long as it lasts."""

    def __init__(self, listener: BeepListener) -> None:
        super().__init__(listener.ends, listener.machine, initiator=False, max_unit=MAX_HANDSHAKE)
        self._listener = listener
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._listener.came(self):
            self.abort()
            return
        # An unknown peer may hold a socket of the gateway only for as long as starting a channel
        # takes.
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(WAIT_FOR_HELLO / SECOND, self._lose_patience)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._listener.went(self)
        super().connection_lost(exc)

    def _lose_patience(self) -> None:
        if not self.links:
            self._listener.errors["timeout"] += 1
            self.abort()


class BeepListener(Listener):
    """Listens on a socket for devices that connect by BEEP."""

    def __init__(
        self,
        switchboard: Switchboard,
        *,
        clock: Clock,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        super().__init__(
            switchboard, clock=clock, mapping=Mapping.DATAGRAM, max_connections=max_connections
        )
        self._sessions: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self.ends = self._ends

    async def start(self, listener: socket.socket, *, tls: ssl.SSLContext | None = None) -> None:
        """Accept connections from a bound socket."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self),
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
        for session in list(self._sessions):
            if not session.links:
                session.abort()

    def came(self, session: _Connection) -> bool:
        """Count a new connection; return False if there is no room for it."""
        if len(self._sessions) >= self._max_connections + STRANGERS:
            self.errors["overloaded"] += 1
            return False
        self._sessions.add(session)
        return True

    def went(self, session: _Connection) -> None:
        """Forget a connection that has ended."""
        self._sessions.discard(session)
