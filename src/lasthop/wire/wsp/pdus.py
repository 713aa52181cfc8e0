"""The PDUs of the session protocol, as far as a push needs them (WSP 8.2).

`encode_pdu` and `decode_pdu` are for connection mode, where a PDU is the user data of a WTP
transaction. Without a connection a transaction number comes first: `encode_unit`, `decode_unit`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import msgspec

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.uintvar import encode_uintvar
from lasthop.wire.wsp.addresses import Address, decode_addresses, encode_addresses
from lasthop.wire.wsp.capabilities import Capabilities, decode_capabilities, encode_capabilities
from lasthop.wire.wsp.headers import DEFAULT_VERSION, Field, decode_headers, encode_headers
from lasthop.wire.wsp.media import decode_content_type, encode_content_type
from lasthop.wire.wsp.primitives import OctetCursor, Version

PROTOCOL_VERSION: Version = (1, 0)
"""The version of the session protocol itself. Only 1.0 is in use."""

MAX_SIZE = 16 * 1024 * 1024
"""The largest number of octets in a PDU. Connection mode can segment what no datagram holds; larger
pushes do not occur."""


class Connect(msgspec.Struct, frozen=True):
    """A client's request to open a session."""

    capabilities: Capabilities = Capabilities()
    headers: tuple[Field, ...] = ()
    version: Version = PROTOCOL_VERSION


class ConnectReply(msgspec.Struct, frozen=True):
    """The server's acceptance of a Connect, with the session's number."""

    session: int
    capabilities: Capabilities = Capabilities()
    headers: tuple[Field, ...] = ()


class Redirect(msgspec.Struct, frozen=True):
    """The server's answer that sends the client to another address."""

    addresses: tuple[Address, ...]
    permanent: bool = False
    reuse_security: bool = False


class Reply(msgspec.Struct, frozen=True):
    """The answer to a method, or to Resume."""

    status: int
    """HTTP's status in one octet: 0x20 is 200, 0x41 is 401."""
    content_type: str = "*/*"
    headers: tuple[Field, ...] = ()
    data: bytes = b""


class Disconnect(msgspec.Struct, frozen=True):
    """The end of the session, from either side."""

    session: int


class Push(msgspec.Struct, frozen=True, gc=False):
    """A message from the server; `confirmed` asks for an acknowledgement of the application."""

    content_type: str
    headers: tuple[Field, ...] = ()
    data: bytes = b""
    confirmed: bool = False


class Suspend(msgspec.Struct, frozen=True):
    """A client's notice that it will be away."""

    session: int


class Resume(msgspec.Struct, frozen=True):
    """A client's notice that it is back."""

    session: int
    capabilities: Capabilities = Capabilities()
    headers: tuple[Field, ...] = ()


Pdu: TypeAlias = Connect | ConnectReply | Redirect | Reply | Disconnect | Push | Suspend | Resume

CONNECT, CONNECT_REPLY, REDIRECT, REPLY, DISCONNECT = 0x01, 0x02, 0x03, 0x04, 0x05
PUSH, CONFIRMED_PUSH, SUSPEND, RESUME = 0x06, 0x07, 0x08, 0x09
"""The PDU types (WSP table 34)."""

_PERMANENT, _REUSE_SECURITY = 0x80, 0x40


def encode_unit(transaction: int, pdu: Pdu, *, version: Version = DEFAULT_VERSION) -> bytes:
    """Encode a datagram without a connection: the transaction number, 0 to 255, and a PDU."""
    return bytes((transaction,)) + encode_pdu(pdu, version=version)


def decode_unit(data: bytes) -> tuple[int, Pdu]:
    """Decode the transaction number and the PDU of a datagram; raise Malformed or TooLarge."""
    cursor = OctetCursor(data)
    return cursor.octet(), _decode(cursor)


def encode_pdu(pdu: Pdu, *, version: Version = DEFAULT_VERSION) -> bytes:
    """Encode a PDU for a peer of this encoding version."""
    match pdu:
        case Push():
            kind = CONFIRMED_PUSH if pdu.confirmed else PUSH
            return bytes((kind,)) + _content(pdu, version)
        case Connect():
            major, minor = pdu.version
            return bytes((CONNECT, major << 4 | minor)) + _agreement(pdu, version)
        case ConnectReply():
            session = encode_uintvar(pdu.session)
            return bytes((CONNECT_REPLY,)) + session + _agreement(pdu, version)
        case Redirect():
            flags = _PERMANENT * pdu.permanent | _REUSE_SECURITY * pdu.reuse_security
            return bytes((REDIRECT, flags)) + encode_addresses(pdu.addresses)
        case Reply():
            return bytes((REPLY, pdu.status)) + _content(pdu, version)
        case Disconnect():
            return bytes((DISCONNECT,)) + encode_uintvar(pdu.session)
        case Suspend():
            return bytes((SUSPEND,)) + encode_uintvar(pdu.session)
        case Resume():
            offered = encode_capabilities(pdu.capabilities)
            lengths = encode_uintvar(pdu.session) + encode_uintvar(len(offered))
            headers = encode_headers(pdu.headers, version=version)
            return bytes((RESUME,)) + lengths + offered + headers


def _content(pdu: Push | Reply, version: Version) -> bytes:
    return _content_head(pdu.content_type, pdu.headers, version) + pdu.data


@lru_cache(maxsize=256)
def _content_head(content_type: str, headers: tuple[Field, ...], version: Version) -> bytes:
    """Encode the content type and headers, cached because most pushes of a publisher share them."""
    head = encode_content_type(content_type, version) + encode_headers(headers, version=version)
    return encode_uintvar(len(head)) + head


def _agreement(pdu: Connect | ConnectReply, version: Version) -> bytes:
    offered = encode_capabilities(pdu.capabilities)
    headers = encode_headers(pdu.headers, version=version)
    return encode_uintvar(len(offered)) + encode_uintvar(len(headers)) + offered + headers


def decode_pdu(data: bytes) -> Pdu:
    """Decode the PDU in `data`, which holds nothing else; raise Malformed with the offset, or
    TooLarge."""
    return _decode(OctetCursor(data))


def _decode(cursor: OctetCursor) -> Pdu:
    if cursor.left > MAX_SIZE:
        raise TooLarge("the PDU is too large", size=cursor.left, limit=MAX_SIZE)
    at = cursor.pos
    kind = cursor.octet()
    pdu: Pdu
    match kind:
        case 0x06 | 0x07:
            content_type, headers = _read_head(cursor)
            return Push(content_type, headers, cursor.rest(), confirmed=kind == CONFIRMED_PUSH)
        case 0x01:
            octet = cursor.octet()
            pdu = Connect(*_read_agreement(cursor), version=(octet >> 4, octet & 0x0F))
        case 0x02:
            pdu = ConnectReply(cursor.uintvar(), *_read_agreement(cursor))
        case 0x03:
            flags = cursor.octet()
            addresses = decode_addresses(cursor)
            pdu = Redirect(addresses, bool(flags & _PERMANENT), bool(flags & _REUSE_SECURITY))
        case 0x04:
            status = cursor.octet()
            content_type, headers = _read_head(cursor)
            return Reply(status, content_type, headers, cursor.rest())
        case 0x05:
            pdu = Disconnect(cursor.uintvar())
        case 0x08:
            pdu = Suspend(cursor.uintvar())
        case 0x09:
            session = cursor.uintvar()
            offered = decode_capabilities(cursor.inside(cursor.uintvar()))
            pdu = Resume(session, offered, decode_headers(cursor))
        case _:
            raise Malformed(f"PDU type {kind:#04x} has no place in a push", offset=at)
    cursor.finish()
    return pdu


def _read_head(cursor: OctetCursor) -> tuple[str, tuple[Field, ...]]:
    """Read the content type, which has no field number in front of it, and the headers behind
    it."""
    head = cursor.inside(cursor.uintvar())
    content_type = decode_content_type(head)
    return content_type, decode_headers(head)


def _read_agreement(cursor: OctetCursor) -> tuple[Capabilities, tuple[Field, ...]]:
    capabilities_length, headers_length = cursor.uintvar(), cursor.uintvar()
    offered = decode_capabilities(cursor.inside(capabilities_length))
    return offered, decode_headers(cursor.inside(headers_length))
