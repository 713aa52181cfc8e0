"""Units that are longer than a packet, cut and joined.

A unit that fits is a packet as it is. A longer one goes in pieces: a mark, which is no frame type,
and a part of the unit.
"""

from __future__ import annotations

from lasthop.errors import FrameTooLarge, MalformedFrame

MORE = 0x7F
"""The mark of a piece that others follow."""
LAST = 0x7E
"""The mark of the last piece."""

SMALLEST = 48
"""Bytes: the least that Bluetooth's L2CAP allows as the size of a packet."""


def cut(unit: bytes, size: int) -> list[bytes]:
    """The packets of at most `size` bytes that carry a unit."""
    if len(unit) <= size:
        return [unit]
    step = size - 1
    packets = [bytes((MORE,)) + unit[pos : pos + step] for pos in range(0, len(unit), step)]
    packets[-1] = bytes((LAST,)) + packets[-1][1:]
    return packets


class Joiner:
    """Puts the packets of one direction together again."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: bytearray | None = None

    def take(self, packet: bytes, *, most: int) -> bytes | None:
        """The unit that is complete with this packet, if one is; of at most `most` bytes."""
        mark = packet[0] if packet else 0
        if mark not in (MORE, LAST):
            if self._pieces is not None:
                raise MalformedFrame("a unit ends inside")
            return packet
        pieces = self._pieces if self._pieces is not None else bytearray()
        pieces += packet[1:]
        if len(pieces) > most:
            raise FrameTooLarge("a unit is too large", size=len(pieces), most=most)
        self._pieces = pieces if mark == MORE else None
        return None if mark == MORE else bytes(pieces)
