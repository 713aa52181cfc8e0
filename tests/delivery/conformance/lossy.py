"""A kind of channel that loses things, over a Unix socket: what short messages will be like. It
takes its place in the table of schemes as any other kind would."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from lasthop.clock import Clock
from lasthop.delivery.channel import Switchboard
from lasthop.delivery.seqpacket import SeqpacketListener
from lasthop.transport import seqpacket
from lasthop.transport.address import GatewayAddress
from lasthop.transport.connected import HeldConnection
from lasthop.transport.link import ChannelLink, Ends, Machine
from lasthop.transport.schemes import Form, Scheme
from lasthop.wire.hop.frames import Hello
from lasthop.wire.hop.handshake import Dialing
from lasthop.wire.hop.mapping import Mapping

LOSS = 0.2
"""Of the units that the gateway sends. A device says again what was lost when it comes back."""

SCHEME = Scheme(Form.FILE, f"{__name__}:connect", f"{__name__}:LossyListener", reliable=False)


class LossyLink(seqpacket.SeqpacketLink):
    """Loses some of what the gateway says after its WELCOME."""

    __slots__ = ("_greeted", "_random", "lost_units")

    ordered = False
    reliable = SCHEME.reliable

    def __init__(
        self, ends: Ends, machine: Machine, connected: socket.socket, *, throttle: bool = False
    ) -> None:
        super().__init__(ends, machine, connected, throttle=throttle)
        self._random = Random(1)
        self._greeted = False
        self.lost_units = 0

    def write(self, units: list[bytes]) -> None:
        kept = [unit for unit in units if not self._loses()]
        self.lost_units += len(units) - len(kept)
        super().write(kept)

    def _loses(self) -> bool:
        greeted, self._greeted = self._greeted, True
        return greeted and self._throttle and self._random.random() < LOSS


class LossyListener(SeqpacketListener):
    """Lets devices in over such channels."""

    mapping = Mapping.UNORDERED
    link = LossyLink


async def connect(
    address: GatewayAddress, _tls: ssl.SSLContext | None, _max_frame: int
) -> HeldConnection:
    """Connect to such a listener from the device's side."""
    connected = await seqpacket.connect(address)

    async def say(hello: Hello, ends: Ends) -> ChannelLink:
        machine = Dialing(hello, mapping=Mapping.UNORDERED, now=ends.clock.now())
        link = LossyLink(ends, machine, connected)
        link.start()
        return link

    return HeldConnection(say, connected.close)


@asynccontextmanager
async def listening(board: Switchboard, clock: Clock, directory: Path) -> AsyncIterator[str]:
    """A listener for such channels; its URL."""
    path = directory / "lossy"
    listener = LossyListener(board, clock=clock)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as bound:
        bound.bind(str(path))
        await listener.start(bound)
        try:
            yield f"lossy:{path}"
        finally:
            await listener.stop()
