"""HTTPS connections during their TLS handshake: each has a place from its first moment, and limited
time to complete the handshake.

A server of asyncio would do the same, but does not report connections whose handshake fails.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from lasthop.runtime.admission import ConnectionPlace
from lasthop.runtime.guard import Guard
from lasthop.runtime.listening import BACKLOG
from lasthop.runtime.tls import Certificates

AT_ONCE = 64
"""The largest number of connections that are accepted before other work has its turn."""

PAUSE = 1.0
"""Seconds to wait when the system has no resources for another connection."""


class Handshakes:
    """Accepts connections from a socket, and passes them on once they are encrypted."""

    def __init__(
        self,
        protocol: Callable[..., asyncio.Protocol],
        certificates: Certificates,
        *,
        guard: Guard,
    ) -> None:
        """`protocol` makes the protocol of an encrypted connection, and gets the connection's
        `place`."""
        self._protocol = protocol
        self._certificates = certificates
        self._guard = guard
        self._listener: socket.socket | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    def start(self, listener: socket.socket) -> None:
        """Start to accept connections from this socket."""
        self._listener = listener
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self._look()

    def stop(self) -> None:
        """Accept no more connections, and cancel the handshakes in progress."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener = None
        for task in list(self._under_way):
            task.cancel()

    def _look(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().add_reader(self._listener, self._accept, self._listener)

    def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(AT_ONCE):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                loop.remove_reader(listener)
                loop.call_later(PAUSE, self._look)
                return
            connection.setblocking(False)
            task = loop.create_task(self._encrypt(connection))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _encrypt(self, connection: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        place: ConnectionPlace | None = None
        # The client may have disconnected, or share no version of TLS with the gateway.
        with suppress(OSError, asyncio.CancelledError):
            place = self._guard.admission.enter(connection.getpeername()[0], task.cancel)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._protocol(place=place),
                connection,
                ssl=self._certificates.web,
                ssl_handshake_timeout=self._guard.patience.handshake,
            )
            return
        if place is None:
            connection.close()
        else:
            place.leave()
