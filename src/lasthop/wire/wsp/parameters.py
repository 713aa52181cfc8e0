"""Parameters of media types and dispositions: `charset=utf-8` (WSP 8.4.2.4 and table 38).

A parameter with an assigned number is written with it if the client's encoding version knows it and
its value fits; any other is written by its name. Unknown numbers are read as `x-wap-0x1e`, and
written back as the same number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from lasthop.errors import Malformed
from lasthop.wire.charsets import NAMES, named
from lasthop.wire.wsp import fields
from lasthop.wire.wsp.content_types import CODES as TYPE_CODES, CONTENT_TYPES
from lasthop.wire.wsp.httpdate import parse_http_date
from lasthop.wire.wsp.primitives import (
    TOKEN,
    OctetCursor,
    Version,
    integer,
    long_integer,
    q_value,
    short_integer,
    text_string,
    text_value,
    token_text,
    version_value,
)

Parameters = tuple[tuple[str, str], ...]

Encode = Callable[[str], bytes]
"""Encodes a value; raises ValueError for a value that the parameter cannot hold."""
Decode = Callable[[OctetCursor], str]


class Parameter(NamedTuple):
    """A parameter with an assigned number."""

    name: str
    since: Version
    encode: Encode
    decode: Decode


def plain_number(text: str) -> int:
    """Parse a number that would be written back in the same form; raise ValueError."""
    if re.fullmatch(r"0|[1-9][0-9]{0,20}", text) is None:
        raise ValueError(f"not a number: {text!r}")
    return int(text)


def encode_charset(text: str) -> bytes:
    """Encode a character set by its number, or else as text."""
    if text == "*":
        return short_integer(0)
    known = named(text)
    if known is not None:
        return integer(known.number)
    return integer(plain_number(text)) if text.isascii() and text.isdigit() else text_value(text)


def decode_charset(cursor: OctetCursor) -> str:
    if _is_text(cursor):
        return cursor.text_value()
    number = cursor.integer()
    return "*" if number == 0 else NAMES.get(number, str(number))


def _encode_number(text: str) -> bytes:
    return integer(plain_number(text))


def _encode_small_number(text: str) -> bytes:
    return short_integer(plain_number(text))


def _decode_number(cursor: OctetCursor) -> str:
    return cursor.text_value() if _is_text(cursor) else str(cursor.integer())


def _encode_date(text: str) -> bytes:
    return long_integer(parse_http_date(text))


def _decode_date(cursor: OctetCursor) -> str:
    return cursor.text_value() if _is_text(cursor) else cursor.date()


def _encode_nothing(text: str) -> bytes:
    if text:
        raise ValueError(f"takes no value: {text!r}")
    return b"\0"


def _encode_type(text: str) -> bytes:
    code = TYPE_CODES.get(text.lower())
    return text_string(text) if code is None or code > 0x7F else short_integer(code)


def _decode_type(cursor: OctetCursor) -> str:
    if _is_text(cursor):
        return cursor.text_string()
    code = cursor.short_integer()
    if code not in CONTENT_TYPES:
        raise Malformed("no media type has this number", offset=cursor.pos - 1)
    return CONTENT_TYPES[code][0]


def encode_field_name(text: str) -> bytes:
    """Encode the name of a header field as a value."""
    codes = fields.CODES.get(text.lower())
    return token_text(text) if codes is None else short_integer(codes[-1][0])


def decode_field_name(cursor: OctetCursor) -> str:
    if cursor.peek() < 0x80:
        return cursor.text_string()
    code = cursor.short_integer()
    if code not in fields.FIELDS:
        raise Malformed("no header field has this number", offset=cursor.pos - 1)
    return fields.FIELDS[code][0]


def _encode_q(text: str) -> bytes:
    # The weight 1 is never sent, not even as a parameter: see `encode_parameters`.
    return q_value(text) or text_value(text)


def _is_text(cursor: OctetCursor) -> bool:
    first = cursor.peek()
    return first == 0 or 0x20 <= first < 0x80


_TEXT = (text_string, OctetCursor.text_string)
_TEXT_VALUE = (text_value, OctetCursor.text_value)
_NUMBER = (_encode_number, _decode_number)
_SMALL = (_encode_small_number, _decode_number)
_DATE = (_encode_date, _decode_date)

PARAMETERS: dict[int, Parameter] = {
    0x00: Parameter("q", (1, 1), _encode_q, OctetCursor.q_value),
    0x01: Parameter("charset", (1, 1), encode_charset, decode_charset),
    0x02: Parameter("level", (1, 1), version_value, OctetCursor.version_value),
    0x03: Parameter("type", (1, 1), *_NUMBER),
    0x04: Parameter("uaprof", (1, 1), *_TEXT),
    0x05: Parameter("name", (1, 1), *_TEXT),
    0x06: Parameter("filename", (1, 1), *_TEXT),
    0x07: Parameter("differences", (1, 1), encode_field_name, decode_field_name),
    0x08: Parameter("padding", (1, 1), *_SMALL),
    0x09: Parameter("type", (1, 2), _encode_type, _decode_type),
    0x0A: Parameter("start", (1, 2), *_TEXT),
    0x0B: Parameter("start-info", (1, 2), *_TEXT),
    0x0C: Parameter("comment", (1, 3), *_TEXT),
    0x0D: Parameter("domain", (1, 3), *_TEXT),
    0x0E: Parameter("max-age", (1, 3), *_NUMBER),
    0x0F: Parameter("path", (1, 3), *_TEXT),
    0x10: Parameter("secure", (1, 3), _encode_nothing, OctetCursor.text_value),
    0x11: Parameter("sec", (1, 4), *_SMALL),
    0x12: Parameter("mac", (1, 4), *_TEXT_VALUE),
    0x13: Parameter("creation-date", (1, 4), *_DATE),
    0x14: Parameter("modification-date", (1, 4), *_DATE),
    0x15: Parameter("read-date", (1, 4), *_DATE),
    0x16: Parameter("size", (1, 4), *_NUMBER),
    0x17: Parameter("name", (1, 4), *_TEXT_VALUE),
    0x18: Parameter("filename", (1, 4), *_TEXT_VALUE),
    0x19: Parameter("start", (1, 4), *_TEXT_VALUE),
    0x1A: Parameter("start-info", (1, 4), *_TEXT_VALUE),
    0x1B: Parameter("comment", (1, 4), *_TEXT_VALUE),
    0x1C: Parameter("domain", (1, 4), *_TEXT_VALUE),
    0x1D: Parameter("path", (1, 4), *_TEXT_VALUE),
}

_CODES: dict[str, list[int]] = {}
"""The numbers of each parameter by its name, the newest first."""
for _code in sorted(PARAMETERS, reverse=True):
    _CODES.setdefault(PARAMETERS[_code].name, []).append(_code)

_UNKNOWN = re.compile(r"x-wap-0x([0-9a-f]{1,8})")


def encode_parameters(parameters: Iterable[tuple[str, str]], version: Version) -> bytes:
    """Encode all parameters of a value; raise ValueError."""
    return b"".join(_encode(name.lower(), value, version) for name, value in parameters)


def _encode(name: str, value: str, version: Version) -> bytes:
    if name == "q" and q_value(value) == b"":
        return b""
    for code in _CODES.get(name, ()):
        parameter = PARAMETERS[code]
        if parameter.since <= version:
            try:
                return short_integer(code) + parameter.encode(value)
            except ValueError:
                continue
    if (unknown := _UNKNOWN.fullmatch(name)) is not None:
        return integer(int(unknown.group(1), 16)) + _compact(value)
    return token_text(name) + _compact(value)


def _compact(value: str) -> bytes:
    """Encode a value that has no type of its own: an integer, a token or a quoted string."""
    try:
        return integer(plain_number(value))
    except ValueError:
        return text_value(value)


def decode_parameters(cursor: OctetCursor) -> Parameters:
    """Decode all parameters up to the end of the value; raise Malformed."""
    found = []
    while cursor.left:
        found.append(_decode(cursor))
    return tuple(found)


def _decode(cursor: OctetCursor) -> tuple[str, str]:
    start = cursor.pos
    first = cursor.peek()
    if 0x20 <= first < 0x80:
        name = cursor.text_string().lower()
        if TOKEN.fullmatch(name) is None:
            raise Malformed("not the name of a parameter", offset=start)
        return name, _decode_number(cursor)
    code = cursor.integer()
    parameter = PARAMETERS.get(code)
    if parameter is None:
        return f"x-wap-{code:#x}", _decode_number(cursor)
    return parameter.name, parameter.decode(cursor)


_PIECE = re.compile(r"""\s*([^\s;="]+)\s*(?:=\s*+("(?:[^"\\]|\\.)*+"|[^;"]*+))?\s*+(?:;|$)""")
"""One parameter; quantifiers are possessive, so that a mismatch is found in one pass."""


def split_parameters(text: str) -> tuple[str, Parameters]:
    """Split a value into what precedes the first semicolon, and the parameters behind it; raise
    ValueError."""
    head, semicolon, rest = text.partition(";")
    found = []
    pos = 0
    while semicolon and pos < len(rest):
        if not rest[pos:].strip():
            break
        piece = _PIECE.match(rest, pos)
        if piece is None or TOKEN.fullmatch(piece.group(1)) is None:
            raise ValueError(f"not a list of parameters: {rest!r}")
        found.append((piece.group(1).lower(), _unquoted(piece.group(2) or "")))
        pos = piece.end()
    return head.strip(), tuple(found)


def _unquoted(text: str) -> str:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text.rstrip()


def join_parameters(head: str, parameters: Iterable[tuple[str, str]]) -> str:
    """Return the text of a value with its parameters."""
    return "".join([head, *(f"; {name}{_shown(value)}" for name, value in parameters)])


def _shown(value: str) -> str:
    if TOKEN.fullmatch(value) is not None:
        return f"={value}"
    escaped = re.sub(r'(["\\])', r"\\\1", value)
    return f'="{escaped}"'
