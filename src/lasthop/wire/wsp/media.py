"""Content types: `application/vnd.wap.sic; charset=utf-8` in four octets (WSP 8.4.2.24).

A number without a name is read as `x-wap-type/0x60`, and written back as the same number.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lasthop.errors import Malformed
from lasthop.wire.wsp.content_types import CODES, CONTENT_TYPES, may_send
from lasthop.wire.wsp.parameters import (
    decode_parameters,
    encode_parameters,
    join_parameters,
    split_parameters,
)
from lasthop.wire.wsp.primitives import (
    TOKEN,
    OctetCursor,
    Version,
    integer,
    short_integer,
    text_string,
    with_length,
)

_UNKNOWN = re.compile(r"x-wap-type/0x([0-9a-f]{1,8})")


@lru_cache(maxsize=1024)
def media_octets(text: str, version: Version) -> bytes:
    """Encode a content type in its shortest form; raise ValueError."""
    whole = CODES.get(text.lower())
    media, parameters = (text, ()) if whole is not None else split_parameters(text)
    if whole is None and not _is_media(media):
        raise ValueError(f"not a media type: {text!r}")
    code = _code(media, version)
    options = encode_parameters(parameters, version)
    if not options and (code is None or code <= 0x7F):
        return text_string(media) if code is None else short_integer(code)
    return with_length((text_string(media) if code is None else integer(code)) + options)


def _code(media: str, version: Version) -> int | None:
    code = CODES.get(media.lower())
    if code is not None:
        return code if may_send(code, version) else None
    unknown = _UNKNOWN.fullmatch(media)
    return None if unknown is None else int(unknown.group(1), 16)


def encode_content_type(text: str, version: Version) -> bytes:
    """Encode a content type; raise Malformed."""
    try:
        return media_octets(text, version)
    except ValueError as error:
        raise Malformed("not a content type", value=text, reason=str(error)) from None


def decode_content_type(cursor: OctetCursor) -> str:
    """Decode a content type in either form; raise Malformed."""
    first = cursor.peek()
    if first >= 0x80:
        return _name(cursor.short_integer())
    if first >= 0x20:
        return _checked(cursor)
    inner = cursor.inside(cursor.value_length())
    media = _checked(inner) if 0x20 <= inner.peek() < 0x80 else _name(inner.integer())
    return join_parameters(media, decode_parameters(inner))


def _is_media(text: str) -> bool:
    kind, _, subtype = text.partition("/")
    return TOKEN.fullmatch(kind) is not None and TOKEN.fullmatch(subtype) is not None


def _name(code: int) -> str:
    known = CONTENT_TYPES.get(code)
    return f"x-wap-type/{code:#x}" if known is None else known[0]


def _checked(cursor: OctetCursor) -> str:
    start = cursor.pos
    media = cursor.text_string()
    if not _is_media(media):
        raise Malformed("not a media type", offset=start)
    return media
