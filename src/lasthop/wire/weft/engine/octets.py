"""Numbers and strings in the bytes of a message."""

from __future__ import annotations

from lasthop.wire.weft.errors import WeftFormatError


def put_number(out: bytearray, value: int) -> None:
    """Seven bits to a byte, least significant first; the top bit says that more follow."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


class Source:
    """Bytes that are read from the front. IndexError where they end early."""

    __slots__ = ("data", "pos", "room", "size")

    def __init__(self) -> None:
        self.data = b""
        self.pos = 0
        self.size = 0
        """Of the value that was read last."""
        self.room = 0
        """Characters that new texts may still have in this message."""

    def number(self) -> int:
        data = self.data
        pos = self.pos
        byte = data[pos]
        pos += 1
        if byte >= 0x80:
            value = byte & 0x7F
            shift = 7
            while byte >= 0x80:
                if shift > 56:
                    raise WeftFormatError("a number has too many digits", offset=pos)
                byte = data[pos]
                pos += 1
                value |= (byte & 0x7F) << shift
                shift += 7
            byte = value
        self.pos = pos
        return byte

    def octets(self, size: int) -> bytes:
        pos = self.pos
        end = pos + size
        if end > len(self.data):
            raise IndexError
        self.pos = end
        return self.data[pos:end]

    def digits(self, size: int) -> str:
        """So many hexadecimal digits."""
        return self.octets((size + 1) >> 1).hex()[:size]

    def groups(self, count: int) -> list[str]:
        """So many groups of digits; each takes a byte at least."""
        if count > len(self.data) - self.pos:
            raise IndexError
        return [self.digits(self.number() >> 3) for _ in range(count)]
