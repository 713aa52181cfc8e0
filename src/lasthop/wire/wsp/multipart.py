"""Binary multipart bodies, `application/vnd.wap.multipart.*` (WSP 8.5)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.uintvar import encode_uintvar
from lasthop.wire.wsp.headers import DEFAULT_VERSION, Field, decode_headers, encode_headers
from lasthop.wire.wsp.media import decode_content_type, encode_content_type
from lasthop.wire.wsp.primitives import OctetCursor, Version

MAX_ENTRIES = 1_000
"""The largest number of parts of a body: a part takes three octets, and some hundred in memory. A
push has a handful."""


class MultipartEntry(msgspec.Struct, frozen=True):
    """One part of a multipart body."""

    content_type: str
    headers: tuple[Field, ...]
    data: bytes


def encode_multipart(
    entries: Iterable[MultipartEntry], *, version: Version = DEFAULT_VERSION
) -> bytes:
    """Encode the multipart body that holds these parts."""
    parts = []
    for entry in entries:
        head = encode_content_type(entry.content_type, version)
        head += encode_headers(entry.headers, version=version)
        parts.append(
            encode_uintvar(len(head)) + encode_uintvar(len(entry.data)) + head + entry.data
        )
    return encode_uintvar(len(parts)) + b"".join(parts)


def decode_multipart(data: bytes) -> tuple[MultipartEntry, ...]:
    """Decode the parts of a body; raise Malformed or TooLarge. The number of parts is ignored, only
    their lengths count: later senders write 0."""
    cursor = OctetCursor(data)
    cursor.uintvar()
    found: list[MultipartEntry] = []
    while cursor.left:
        if len(found) == MAX_ENTRIES:
            raise TooLarge("too many parts", limit=MAX_ENTRIES, offset=cursor.pos)
        head_length, data_length = cursor.uintvar(), cursor.uintvar()
        head = cursor.inside(head_length)
        if not head.left:
            raise Malformed("a part has no content type", offset=head.pos)
        content_type = decode_content_type(head)
        found.append(MultipartEntry(content_type, decode_headers(head), cursor.take(data_length)))
    return tuple(found)
