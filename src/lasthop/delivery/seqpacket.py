"""Devices over SOCK_SEQPACKET: Unix sockets on the same machine, Bluetooth's L2CAP nearby."""

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
"""Connections that are taken before others have their turn."""

PAUSE = 1.0
"""Seconds without new connections when there are no descriptors left."""


class SeqpacketListener(Listener):
    """Listens on a socket that keeps boundaries."""

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
        """Take connections from a bound socket; nobody encrypts them, with `tls` or without."""
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self._listening.append(listener)
        self._watch(listener)

    async def stop(self) -> None:
        """Take no more, and let everybody go."""
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
                # Out of descriptors: whoever waits is taken when somebody else may have left.
                self.errors["accept"] += 1
                loop = asyncio.get_running_loop()
                loop.remove_reader(listener)
                loop.call_later(PAUSE, self._watch, listener)
                return
            self.link(self._ends, self.machine(), connected, throttle=True).start()
