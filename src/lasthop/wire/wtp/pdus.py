"""The PDUs of WTP, and how several of them share a datagram."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeAlias

import msgspec

from lasthop.errors import Malformed, TooLarge

RESPONDER = 0x8000
"""The top bit of a transaction's number, set in PDUs of the responder."""

NUMBERS = 0x8000
"""The number of transaction numbers; they are counted modulo this."""

MAX_PDUS = 64
"""The most PDUs in one datagram. Peers put an acknowledgement in front of a result, not dozens."""


class Trailer(IntEnum):
    """The place of a packet in its message: the GTR and TTR bits."""

    MIDDLE = 0
    LAST = 1
    """The last packet of the message."""
    GROUP = 2
    """The last packet of a group, which is acknowledged before the next group is sent."""
    ALONE = 3
    """The only packet, from a sender that neither segments nor re-assembles."""


class Provider(IntEnum):
    """The reasons for which the protocol itself aborts a transaction."""

    UNKNOWN = 0
    PROTOCOL_ERROR = 1
    INVALID_NUMBER = 2
    NO_CLASS_2 = 3
    NO_SEGMENTS = 4
    NO_USER_ACK = 5
    VERSION = 6
    CAPACITY = 7
    NO_RESPONSE = 8
    TOO_LARGE = 9


class Tpi(msgspec.Struct, frozen=True):
    """An item of the variable header of a PDU."""

    identity: int
    data: bytes


PSN_ITEM = 3
"""The identity of the item that says which packet an acknowledgement is for."""


class Invoke(msgspec.Struct, frozen=True):
    """The first packet of a request."""

    tid: int
    tcl: int
    """The transaction class, 0 to 2."""
    data: bytes = b""
    trailer: Trailer = Trailer.LAST
    again: bool = False
    tid_new: bool = False
    """Whether the initiator's numbers start again, so that the responder must forget the last
    one."""
    user_ack: bool = False
    """Whether the responder's user has to acknowledge, and not its protocol."""
    version: int = 0
    items: tuple[Tpi, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """The first packet of a result."""

    tid: int
    data: bytes = b""
    trailer: Trailer = Trailer.LAST
    again: bool = False
    items: tuple[Tpi, ...] = ()


class Segment(msgspec.Struct, frozen=True):
    """A further packet of a request or of a result."""

    tid: int
    psn: int
    data: bytes
    trailer: Trailer
    of_result: bool = False
    again: bool = False
    items: tuple[Tpi, ...] = ()


class Ack(msgspec.Struct, frozen=True):
    """An acknowledgement. With `tve` set, a responder asks whether the number is in use, and an
    initiator says that it is."""

    tid: int
    tve: bool = False
    again: bool = False
    psn: int | None = None
    """The number of the last packet of the acknowledged group; None for the whole message."""
    items: tuple[Tpi, ...] = ()


class NegativeAck(msgspec.Struct, frozen=True):
    """Says that these packets have not arrived. An empty list means the first packet."""

    tid: int
    missing: tuple[int, ...]
    again: bool = False
    items: tuple[Tpi, ...] = ()


class Abort(msgspec.Struct, frozen=True):
    """The end of a transaction, by the protocol or by its user."""

    tid: int
    reason: int
    by_user: bool = False
    items: tuple[Tpi, ...] = ()


Pdu: TypeAlias = Invoke | Result | Segment | Ack | NegativeAck | Abort

_INVOKE, _RESULT, _ACK, _ABORT, _SEGMENT, _RESULT_SEGMENT, _NACK = 1, 2, 3, 4, 5, 6, 7
_CON = 0x80


def encode_pdu(pdu: Pdu) -> bytes:
    """Encode one PDU as the octets of a datagram."""
    items = pdu.items
    match pdu:
        case Invoke():
            flags = pdu.version << 6 | pdu.tid_new << 5 | pdu.user_ack << 4 | pdu.tcl
            low = pdu.trailer << 1 | pdu.again
            return _head(_INVOKE, low, pdu.tid, bytes((flags,)), items) + pdu.data
        case Result():
            low = pdu.trailer << 1 | pdu.again
            return _head(_RESULT, low, pdu.tid, b"", items) + pdu.data
        case Segment():
            kind = _RESULT_SEGMENT if pdu.of_result else _SEGMENT
            low = pdu.trailer << 1 | pdu.again
            return _head(kind, low, pdu.tid, bytes((pdu.psn,)), items) + pdu.data
        case Ack():
            if pdu.psn is not None:
                items = (*items, Tpi(PSN_ITEM, bytes((pdu.psn,))))
            return _head(_ACK, pdu.tve << 2 | pdu.again, pdu.tid, b"", items)
        case NegativeAck():
            missing = bytes((len(pdu.missing), *pdu.missing))
            return _head(_NACK, int(pdu.again), pdu.tid, missing, items)
        case Abort():
            return _head(_ABORT, int(pdu.by_user), pdu.tid, bytes((pdu.reason,)), items)


def _head(kind: int, low: int, tid: int, fixed: bytes, items: tuple[Tpi, ...]) -> bytes:
    first = kind << 3 | low
    if not items:
        return bytes((first,)) + tid.to_bytes(2, "big") + fixed
    out = bytes((first | _CON,)) + tid.to_bytes(2, "big") + fixed
    for n, item in enumerate(items, 1):
        more = _CON if n < len(items) else 0
        if len(item.data) > 255 or not 0 <= item.identity < 16:
            raise ValueError("an item must have at most 255 octets and one of 16 identities")
        if len(item.data) < 4:
            out += bytes((more | item.identity << 3 | len(item.data),))
        else:
            out += bytes((more | item.identity << 3 | 0x04, len(item.data)))
        out += item.data
    return out


def encode_datagram(pdus: Sequence[Pdu]) -> bytes:
    """Encode one datagram with one PDU or several."""
    if len(pdus) == 1:
        return encode_pdu(pdus[0])
    out = bytearray(1)
    for pdu in pdus:
        octets = encode_pdu(pdu)
        if len(octets) > 0x7FFF:
            raise ValueError("the PDU is too long to share a datagram")
        size = len(octets)
        out += bytes((size,)) if size < 0x80 else (size | 0x8000).to_bytes(2, "big")
        out += octets
    return bytes(out)


def decode_datagram(data: bytes) -> list[Pdu]:
    """Decode the PDUs of a datagram; raise Malformed with the offset, or TooLarge."""
    if not data:
        raise Malformed("the datagram is empty", offset=0)
    if data[0] != 0:
        return [_decode(data, 0)]
    found: list[Pdu] = []
    at = 1
    while at < len(data):
        if len(found) == MAX_PDUS:
            raise TooLarge("there are too many PDUs in a datagram", limit=MAX_PDUS)
        size = data[at]
        start = at + 1
        if size & 0x80:
            size = (size & 0x7F) << 8 | _octet(data, start)
            start += 1
        if size == 0 or start + size > len(data):
            raise Malformed("the datagram ends inside a PDU", offset=at)
        found.append(_decode(data[start : start + size], start))
        at = start + size
    if not found:
        raise Malformed("a datagram has no PDUs", offset=at)
    return found


def _octet(data: bytes, at: int) -> int:
    if at >= len(data):
        raise Malformed("the datagram ends inside a PDU", offset=at)
    return data[at]


def _decode(data: bytes, offset: int) -> Pdu:
    """Decode one PDU, which begins at `offset` of its datagram."""
    try:
        return _read(data)
    except Malformed as error:
        at = error.fields.get("offset")
        where = offset + at if isinstance(at, int) else offset
        raise Malformed(error.detail, offset=where) from None


def _read(data: bytes) -> Pdu:
    first = data[0]
    kind = first >> 3 & 0x0F
    tid = _octet(data, 1) << 8 | _octet(data, 2)
    trailer, again = Trailer(first >> 1 & 0x03), bool(first & 1)
    at = 3
    missing: tuple[int, ...] = ()
    fixed = 0
    if kind in (_INVOKE, _ABORT, _SEGMENT, _RESULT_SEGMENT):
        fixed = _octet(data, at)
        at += 1
    elif kind == _NACK:
        count = _octet(data, at)
        at += 1 + count
        if at > len(data):
            raise Malformed("the datagram ends inside a PDU", offset=3)
        missing = tuple(data[4:at])
    elif kind not in (_RESULT, _ACK):
        raise Malformed(f"PDU type {kind} is not known", offset=0)
    items: tuple[Tpi, ...] = ()
    if first & _CON:
        items, at = _read_items(data, at)
    rest = data[at:]
    match kind:
        case 1:
            return Invoke(
                tid,
                fixed & 0x03,
                rest,
                trailer,
                again,
                tid_new=bool(fixed & 0x20),
                user_ack=bool(fixed & 0x10),
                version=fixed >> 6,
                items=items,
            )
        case 2:
            return Result(tid, rest, trailer, again, items)
        case 5 | 6:
            return Segment(tid, fixed, rest, trailer, kind == _RESULT_SEGMENT, again, items)
        case _:
            pass
    if rest:
        raise Malformed("there are octets behind a PDU", offset=at)
    if kind == _ACK:
        return _ack(tid, first, items)
    if kind == _NACK:
        return NegativeAck(tid, missing, again, items)
    return Abort(tid, fixed, by_user=first & 0x07 == 1, items=items)


def _ack(tid: int, first: int, items: tuple[Tpi, ...]) -> Ack:
    psn = None
    if items and items[-1].identity == PSN_ITEM and len(items[-1].data) == 1:
        psn = items[-1].data[0]
        items = items[:-1]
    return Ack(tid, bool(first & 0x04), bool(first & 1), psn, items)


def _read_items(data: bytes, at: int) -> tuple[tuple[Tpi, ...], int]:
    found = []
    more = True
    while more:
        octet = _octet(data, at)
        start, size = at + 1, octet & 0x03
        if octet & 0x04:
            size, start = _octet(data, start), start + 1
        if start + size > len(data):
            raise Malformed("the datagram ends inside an item", offset=at)
        found.append(Tpi(octet >> 3 & 0x0F, data[start : start + size]))
        more = bool(octet & _CON)
        at = start + size
    return tuple(found), at
