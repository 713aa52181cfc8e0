"""What a gateway may tell a device about other ways: whom the device believes, and what it keeps.

A list of ways leads a device and its credential elsewhere, so it counts only over a connection that
nobody else can have written to: TLS with a certificate that was checked, or this machine. The ways
themselves must be as safe.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable

import msgspec

from lasthop.device.way import MOST_TOLD, GatewayWay, Origin
from lasthop.errors import InvalidRequest
from lasthop.transport.address import GatewayAddress, parse
from lasthop.transport.encryption import insist
from lasthop.transport.locality import is_local
from lasthop.transport.schemes import SCHEMES, Form

MEMORY = "lasthop.ways"
"""The name under which the inbox keeps the ways that the gateway has told."""


def is_safe(url: str, tls: ssl.SSLContext | None) -> bool:
    """Whether nobody but the gateway can speak over a connection to this URL."""
    try:
        address = parse(url)
        if _on_this_machine(address):
            return True
        insist(address, tls)
    except InvalidRequest:
        return False
    return True


def _on_this_machine(address: GatewayAddress) -> bool:
    if SCHEMES[address.scheme].form is Form.FILE:
        return True
    return address.host == "localhost" or is_local((address.host, address.port))


def believed(ways: Iterable[tuple[str, str]], tls: ssl.SSLContext | None) -> list[GatewayWay]:
    """Return the ways of such a list that a device may use."""
    found = [
        GatewayWay(url, link or None, origin=Origin.GATEWAY)
        for link, url in ways
        if is_safe(url, tls)
    ]
    return found[:MOST_TOLD]


def dump(ways: Iterable[GatewayWay]) -> bytes:
    """Encode told ways for the inbox."""
    return msgspec.json.encode([(way.link or "", way.url) for way in ways])


def load(kept: bytes | None, tls: ssl.SSLContext | None) -> list[GatewayWay]:
    """Decode the ways that the inbox has kept; a note that cannot be read has none."""
    try:
        pairs = msgspec.json.decode(kept or b"[]", type=list[tuple[str, str]])
    except msgspec.DecodeError:
        return []
    return believed(pairs, tls)
