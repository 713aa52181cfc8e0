"""The kinds of channels that a device in rehearsal can dial."""

from __future__ import annotations

from enum import Enum

from lasthop.wire.hop.mapping import Mapping


class Interconnect(Enum):
    """A kind of transport that carries the hop protocol."""

    STREAM = "stream"
    """Bytes in order, in pieces of any size, until a reset: TCP."""
    DATAGRAM = "datagram"
    """Whole units in order: WebSocket, SOCK_SEQPACKET, BEEP."""
    LOSSY = "lossy"
    """Units that may be lost, duplicated or overtaken: SMS."""
    HELD = "held"
    """Units in parallel HTTP requests, which overtake one another."""
    POLLED = "polled"
    """Units in one short HTTP request at a time."""

    @property
    def mapping(self) -> Mapping:
        """The mapping of the hop protocol that this transport uses."""
        if self is Interconnect.STREAM:
            return Mapping.STREAM
        return Mapping.DATAGRAM if self is Interconnect.DATAGRAM else Mapping.UNORDERED

    @property
    def ordered(self) -> bool:
        """Whether units arrive in the order in which they were sent."""
        return self.mapping.ordered

    @property
    def lossless(self) -> bool:
        """Whether every unit arrives that was sent before the end of the channel."""
        return self is not Interconnect.LOSSY
