"""Header blocks: text lines to octets and back (WSP 8.4.1).

A header that is not understood is kept as it came (`RawHeader`) and sent again octet for octet;
only a block whose fields cannot be told apart is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

import msgspec

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.wsp.fields import FIELDS, code_of
from lasthop.wire.wsp.primitives import CONTROL, TOKEN, OctetCursor, Version, text_string
from lasthop.wire.wsp.values import KINDS

DEFAULT_VERSION: Version = (1, 2)
"""The first encoding version that has everything a push needs; every client of a push knows it."""

DEFAULT_PAGE = 1
SHIFT = 0x7F
LAST_SHORT_CUT = 0x1F

MAX_REMEMBERED = 100
"""The largest number of characters in a value whose octets are cached: most headers recur from push
to push."""

MAX_BLOCK = 65_535
"""The largest number of octets in a block, which travels in one datagram."""


class Header(msgspec.Struct, frozen=True, gc=False):
    """A header as HTTP has it. A list has one header for each of its elements."""

    name: str
    value: str


class RawHeader(msgspec.Struct, frozen=True):
    """A header whose field or value has no known meaning."""

    page: int
    field: int
    """The number of the field, without the top bit."""
    value: bytes
    """The value as on the wire, with its length or the zero at its end."""


Field: TypeAlias = Header | RawHeader

_KINDS = {name.lower(): kind for name, kind in KINDS.items()}


def encode_headers(headers: Iterable[Field], *, version: Version = DEFAULT_VERSION) -> bytes:
    """Encode a block for a client of this encoding version; raise Malformed or TooLarge.

    Headers that such a client does not know, or that have no binary form, are written as text.
    """
    out = bytearray()
    page = DEFAULT_PAGE
    for header in headers:
        if isinstance(header, RawHeader):
            if header.page != page:
                page = header.page
                out += bytes((page,) if 0 < page <= LAST_SHORT_CUT else (SHIFT, page))
            out.append(header.field | 0x80)
            out += header.value
            continue
        if page != DEFAULT_PAGE:
            page = DEFAULT_PAGE
            out.append(DEFAULT_PAGE)
        out += _encode(header, version)
    if len(out) > MAX_BLOCK:
        raise TooLarge("the headers are too long", size=len(out), limit=MAX_BLOCK)
    return bytes(out)


def _encode(header: Header, version: Version) -> bytes:
    short = len(header.value) <= MAX_REMEMBERED
    return _remembered(header, version) if short else _octets(header, version)


@lru_cache(maxsize=4096)
def _remembered(header: Header, version: Version) -> bytes:
    return _octets(header, version)


def _octets(header: Header, version: Version) -> bytes:
    name, value = header.name, header.value.strip()
    if TOKEN.fullmatch(name) is None:
        raise Malformed("not the name of a header", name=name)
    if CONTROL.search(value) is not None:
        raise Malformed("a header must not contain control characters", name=name)
    code = code_of(name, version)
    kind = _KINDS.get(name.lower())
    if code is None or kind is None:
        return _as_text(name, value)
    octet = bytes((code | 0x80,))
    try:
        if kind.listed and "," in value:
            elements = _elements(value)
            return b"".join(octet + kind.encode(each, code, version) for each in elements)
        return octet + kind.encode(value, code, version)
    except ValueError:
        return _as_text(name, value)


def _as_text(name: str, value: str) -> bytes:
    return name.encode() + b"\0" + text_string(value)


_ELEMENT = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*+")*+')


def _elements(value: str) -> list[str]:
    """Split a list at the commas that are not within quotation marks; raise ValueError."""
    found, pos = [], 0
    while pos <= len(value):
        piece = _ELEMENT.match(value, pos)
        assert piece is not None
        if piece.end() < len(value) and value[piece.end()] != ",":
            raise ValueError("a quotation mark has no counterpart")
        if element := piece.group().strip():
            found.append(element)
        pos = piece.end() + 1
    if not found:
        raise ValueError("a list has no elements")
    return found


def decode_headers(data: bytes | OctetCursor) -> tuple[Field, ...]:
    """Decode the headers of a block; raise Malformed with the offset, or TooLarge."""
    cursor = data if isinstance(data, OctetCursor) else OctetCursor(data)
    if cursor.left > MAX_BLOCK:
        raise TooLarge("the headers are too long", size=cursor.left, limit=MAX_BLOCK)
    page = DEFAULT_PAGE
    found: list[Field] = []
    while cursor.left:
        at = cursor.pos
        first = cursor.octet()
        if first >= 0x80:
            found.append(_decode(page, first & 0x7F, cursor.value()))
        elif first == SHIFT:
            page = cursor.octet()
        elif first > LAST_SHORT_CUT:
            cursor.pos = at
            found.append(_decode_text(cursor))
        elif first:
            page = first
        else:
            raise Malformed("a header cannot start with a zero", offset=at)
    return tuple(found)


def _decode(page: int, code: int, value: OctetCursor) -> Field:
    start = value.pos
    if page == DEFAULT_PAGE and code in FIELDS:
        name = FIELDS[code][0]
        kind = KINDS.get(name)
        try:
            if kind is not None:
                text = kind.decode(value)
                value.finish()
                return Header(name, text)
        except Malformed:
            pass
    return RawHeader(page, code, value.data[start : value.end])


def _decode_text(cursor: OctetCursor) -> Header:
    at = cursor.pos
    name = cursor.text_string()
    if TOKEN.fullmatch(name) is None:
        raise Malformed("not the name of a header", offset=at)
    return Header(name, cursor.text_string().strip())
