"""Units that are longer than a packet, cut into pieces and joined again.

A unit that fits is one packet. A longer one goes in pieces: a mark, which is no frame type, and a
part of the unit (docs/hop-protocol.md, "SOCK_SEQPACKET").
"""

from __future__ import annotations

from lasthop.errors import FrameTooLarge, MalformedFrame

MORE = 0x7F
"""The mark of a piece of a unit that other pieces follow."""
LAST = 0x7E
"""The mark of the last piece of a unit."""

SMALLEST = 48
"""The smallest packet in bytes that Bluetooth's L2CAP allows."""


def cut(unit: bytes, size: int) -> list[bytes]:
    """Return the packets of at most `size` bytes that carry a unit."""
    if len(unit) <= size:
        return [unit]
    step = size - 1
    packets = [bytes((MORE,)) + unit[pos : pos + step] for pos in range(0, len(unit), step)]
    packets[-1] = bytes((LAST,)) + packets[-1][1:]
    return packets


class Joiner:
    """Joins the packets of one direction into units."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: bytearray | None = None

    def take(self, packet: bytes, *, most: int) -> bytes | None:
        """Handle a received packet; return the unit that is complete with it, or None. Raise
        HopError when the unit is malformed or has more than `most` bytes."""
        mark = packet[0] if packet else 0
        if mark not in (MORE, LAST):
            if self._pieces is not None:
                raise MalformedFrame("a whole unit came before the last piece of another")
            return packet
        pieces = self._pieces if self._pieces is not None else bytearray()
        pieces += packet[1:]
        if len(pieces) > most:
            raise FrameTooLarge("a unit is too large", size=len(pieces), most=most)
        self._pieces = pieces if mark == MORE else None
        return None if mark == MORE else bytes(pieces)
