"""Address records: where to reach a peer, in a session initiation request or a redirection.

The first octet says which parts follow (0x80 a bearer, 0x40 a port) and how long the address is.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.wire.wsp.primitives import OctetCursor

HAS_BEARER = 0x80
HAS_PORT = 0x40
MAX_LENGTH = 0x3F


class Address(msgspec.Struct, frozen=True):
    """A contact point: an address, with a port and a bearer if they are given."""

    address: bytes
    """The address: 4 octets of IPv4, 16 of IPv6, or what the bearer uses."""
    port: int | None = None
    bearer: int | None = None
    """A bearer type of the Wireless Datagram Protocol."""


def encode_addresses(addresses: Iterable[Address]) -> bytes:
    out = bytearray()
    for each in addresses:
        if len(each.address) > MAX_LENGTH:
            raise ValueError(f"an address may have at most {MAX_LENGTH} octets")
        flags = len(each.address)
        parts = b""
        if each.bearer is not None:
            flags |= HAS_BEARER
            parts += bytes((each.bearer,))
        if each.port is not None:
            flags |= HAS_PORT
            parts += each.port.to_bytes(2, "big")
        out.append(flags)
        out += parts + each.address
    return bytes(out)


def decode_addresses(cursor: OctetCursor) -> tuple[Address, ...]:
    """Decode the address records up to the end of the cursor; raise Malformed."""
    found = []
    while cursor.left:
        flags = cursor.octet()
        bearer = cursor.octet() if flags & HAS_BEARER else None
        port = int.from_bytes(cursor.take(2), "big") if flags & HAS_PORT else None
        found.append(Address(cursor.take(flags & MAX_LENGTH), port, bearer))
    return tuple(found)
