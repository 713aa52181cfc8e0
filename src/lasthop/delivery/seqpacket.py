"""The listener for devices over SOCK_SEQPACKET: Unix sockets on the same machine, Bluetooth's L2CAP
nearby."""

from __future__ import annotations

import asyncio
import socket
import ssl

from lasthop.clock import Clock
from lasthop.delivery.channel import Switchboard
from lasthop.delivery.listener import MAX_CONNECTIONS, Listener
from lasthop.delivery.tcp import BACKLOG
from lasthop.transport.seqpacket import SeqpacketLink
from lasthop.wire.hop.mapping import Mapping

AT_ONCE = 64
"""Connections that are accepted in one go, before other work has its turn."""

PAUSE = 1.0
"""Seconds without new connections after the process has run out of descriptors."""


class SeqpacketListener(Listener):
    """Listens on a socket that keeps the boundaries of packets."""

    mapping = Mapping.DATAGRAM
    link = SeqpacketLink

    def __init__(
        self,
        switchboard: Switchboard,
        *,
        clock: Clock,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        super().__init__(
            switchboard, clock=clock, mapping=self.mapping, max_connections=max_connections
        )
        self._listening: list[socket.socket] = []

    async def start(self, listener: socket.socket, *, tls: ssl.SSLContext | None = None) -> None:
        """Accept connections from a bound socket; they are not encrypted, with `tls` or without."""
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self._listening.append(listener)
        self._watch(listener)

    async def stop(self) -> None:
        """Accept no more connections, and close those that are open."""
        for listener in self._listening:
            asyncio.get_running_loop().remove_reader(listener)
        self._listening = []
        self.close_all()

    def _watch(self, listener: socket.socket) -> None:
        if listener in self._listening:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                connected, _ = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # Out of descriptors: those who wait are accepted later, when other connections may
                # have ended.
                self.errors["accept"] += 1
                loop = asyncio.get_running_loop()
                loop.remove_reader(listener)
                loop.call_later(PAUSE, self._watch, listener)
                return
            self.link(self._ends, self.machine(), connected, throttle=True).start()
