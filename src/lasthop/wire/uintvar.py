"""WAP's variable-length integer: `uintvar` in WSP, `mb_u_int32` in WBXML.

Seven bits to an octet, most significant first, the top bit set on all octets but the last; at most
five octets for at most 32 bits (WSP 8.1.2, WBXML 5.1). Longer forms than needed are read, since
nothing forbids them, and never written.
"""

from __future__ import annotations

from lasthop.errors import Malformed

MAX_VALUE = 2**32 - 1
MAX_OCTETS = 5

_ONE_OCTET = tuple(bytes((value,)) for value in range(0x80))


def encode_uintvar(value: int) -> bytes:
    """Return the shortest encoding of `value`.

    >>> encode_uintvar(300).hex()
    '822c'
    """
    if 0 <= value < 0x80:
        return _ONE_OCTET[value]
    if not 0 <= value <= MAX_VALUE:
        raise ValueError(f"a uintvar must be unsigned, with at most 32 bits: {value}")
    out = [value & 0x7F]
    value >>= 7
    while value:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(reversed(out))


def read_uintvar(data: bytes, pos: int) -> tuple[int, int]:
    """Return the uintvar that starts at `pos`, and the position behind it; raise Malformed."""
    value = 0
    last = min(len(data), pos + MAX_OCTETS)
    for at in range(pos, last):
        octet = data[at]
        if octet < 0x80:
            value = value << 7 | octet
            if value > MAX_VALUE:
                break
            return value, at + 1
        value = value << 7 | octet & 0x7F
    else:
        if last < pos + MAX_OCTETS:
            raise Malformed("the data ends inside a number", offset=pos)
    raise Malformed("a number has more than 32 bits", offset=pos)
