"""What the codec has to know of a transport: whether it keeps boundaries and order."""

from __future__ import annotations

from enum import Enum


class Mapping(Enum):
    """How frames are carried by a transport (docs/hop-protocol.md, "Frames and mappings")."""

    STREAM = "stream"
    """Ordered bytes (TCP, TLS): every frame is preceded by its length."""

    DATAGRAM = "datagram"
    """Ordered messages without loss (WebSocket, SOCK_SEQPACKET): each is a frame or a bundle."""

    UNORDERED = "unordered"
    """Messages that may overtake one another or get lost (parallel HTTP requests, SMS): nothing is
    relative to an earlier message."""

    @property
    def ordered(self) -> bool:
        """Whether frames arrive in the order in which they were encoded."""
        return self is not Mapping.UNORDERED

    @property
    def streamed(self) -> bool:
        """Whether frames are cut out of a byte stream."""
        return self is Mapping.STREAM
