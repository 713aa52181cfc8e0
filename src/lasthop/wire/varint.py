"""Unsigned LEB128: the integers of every lasthop wire format that has no format of its own.

Seven bits to a byte, least significant first, the top bit set on all bytes but the last. A value
has at most 63 bits, so that it fits the signed integers of SQLite, Arrow and Java, and only its
shortest form is valid, so that a value has one encoding.
"""

from __future__ import annotations

from lasthop.errors import MalformedFrame

MAX_VALUE = 2**63 - 1
MAX_BYTES = 9
"""The longest varint, in bytes: nine bytes of seven bits are exactly 63 bits."""

_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


def encode_varint(value: int) -> bytes:
    """Return the shortest encoding of `value`.

    >>> encode_varint(300).hex()
    'ac02'
    """
    if not 0 <= value <= MAX_VALUE:
        raise ValueError(f"a varint must be unsigned, with at most 63 bits: {value}")
    if value < 0x80:
        return _ONE_BYTE[value]
    if value < 0x200000:
        # Lengths, counts and steps between keys are mostly this small: half the cost of the loop.
        if value < 0x4000:
            return bytes((value & 0x7F | 0x80, value >> 7))
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Return the varint that starts at `pos`, and the position behind it; raise MalformedFrame.

    The caller checks that this position is not behind the end of its frame.
    """
    try:
        byte = data[pos]
        if byte < 0x80:
            return byte, pos + 1
        value = byte & 0x7F
        shift = 7
        while True:
            pos += 1
            byte = data[pos]
            if byte < 0x80:
                break
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift == 7 * MAX_BYTES:
                raise MalformedFrame("a number has more than 63 bits")
    except IndexError:
        raise MalformedFrame("the frame ends inside a number") from None
    # A last byte of zero adds nothing: a shorter form exists, and a value has one encoding only.
    if byte == 0:
        raise MalformedFrame("a number is not in its shortest form")
    return value | byte << shift, pos + 1
