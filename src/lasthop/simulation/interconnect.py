"""The kinds of channels that a device in rehearsal can dial."""

from __future__ import annotations

from enum import Enum

from lasthop.wire.hop.mapping import Mapping


class Interconnect(Enum):
    """A way to carry the hop protocol."""

    STREAM = "stream"
    """Bytes in order, in pieces of any size, until a reset: TCP."""
    DATAGRAM = "datagram"
    """Whole units in order: WebSocket, SOCK_SEQPACKET, BEEP."""
    LOSSY = "lossy"
    """Units of which each may be lost, doubled or overtaken: SMS."""
    HELD = "held"
    """Units in parallel HTTP requests, which overtake one another."""
    POLLED = "polled"
    """One short HTTP request at a time."""

    @property
    def mapping(self) -> Mapping:
        """What the codec has to know."""
        if self is Interconnect.STREAM:
            return Mapping.STREAM
        return Mapping.DATAGRAM if self is Interconnect.DATAGRAM else Mapping.UNORDERED

    @property
    def ordered(self) -> bool:
        """Whether nothing overtakes anything."""
        return self.mapping.ordered

    @property
    def lossless(self) -> bool:
        """Whether everything arrives that was sent before the end."""
        return self is not Interconnect.LOSSY
