"""Numbers and strings in the bytes of a message."""

from __future__ import annotations

from typing import Final

from lasthop_xml.weft.errors import WeftFormatError

COMPILED: Final = ".compiled." in __name__
"""Whether this is the compiled copy, in which a plain loop is faster than a trick."""
_FLAGS: Final = tuple(bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256))


def put_number(out: bytearray, value: int) -> None:
    """Write a number, seven bits to a byte, least significant first; the top bit means that more
    follow."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_flags(out: bytearray, start: int, flags: bytearray) -> None:
    """Write bits into the zero bytes at `start`, least significant first, from the digits 0 and
    1."""
    if COMPILED:
        for at in range(len(flags)):
            if flags[at] == 0x31:
                out[start + (at >> 3)] |= 1 << (at & 7)
        return
    # Converting a row of binary digits, last one first, into a number is faster than a loop in
    # Python.
    flags.reverse()
    size = (len(flags) + 7) >> 3
    out[start : start + size] = int(flags, 2).to_bytes(size, "little")


class ByteSource:
    """Reads the bytes of a message from the front; raises IndexError where they end early."""

    __slots__ = ("data", "pos", "room", "size")

    def __init__(self) -> None:
        self.data = b""
        self.pos = 0
        self.size = 0
        """The size of the value that was read last."""
        self.room = 0
        """The number of characters that new texts may still have in this message."""

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

    def flags(self, count: int) -> bytes:
        """Return `count` bits, each as a byte that is 0 or 1; bits that fill up the last byte must
        be 0."""
        data = self.data
        pos = self.pos
        end = pos + ((count + 7) >> 3)
        if end > len(data):
            raise IndexError
        self.pos = end
        if count & 7 and data[end - 1] >> (count & 7):
            raise WeftFormatError("the bits after the last step must be 0", offset=end)
        if COMPILED:
            flags = bytearray(count)
            for at in range(count):
                flags[at] = data[pos + (at >> 3)] >> (at & 7) & 1
            return bytes(flags)
        return b"".join([_FLAGS[byte] for byte in data[pos:end]])[:count]

    def octets(self, size: int) -> bytes:
        pos = self.pos
        end = pos + size
        if end > len(self.data):
            raise IndexError
        self.pos = end
        return self.data[pos:end]

    def digits(self, size: int) -> str:
        """Return the next `size` hexadecimal digits as text."""
        return self.octets((size + 1) >> 1).hex()[:size]

    def groups(self, count: int) -> list[str]:
        """Return `count` groups of hexadecimal digits; each takes at least a byte."""
        if count > len(self.data) - self.pos:
            raise IndexError
        return [self.digits(self.number() >> 3) for _ in range(count)]
