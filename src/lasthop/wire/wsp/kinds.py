"""Kinds of header values, and the functions that make them.

A kind encodes text as octets, and raises ValueError where a value has no binary form: the header is
then sent as text, name and all. It decodes octets as text, and raises Malformed where they have no
known meaning: the header is then kept as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lasthop.errors import Malformed
from lasthop.wire.wsp.parameters import split_parameters
from lasthop.wire.wsp.primitives import (
    OctetCursor,
    Version,
    q_value,
    short_integer,
    token_text,
    with_length,
)


class WspKind(NamedTuple):
    """The encoder and decoder of one kind of header value."""

    encode: Callable[[str, int, Version], bytes]
    """Encodes the text, given the number of the field and the client's encoding version."""
    decode: Callable[[OctetCursor], str]
    listed: bool = False
    """Whether a comma separates elements, each of which is a field of its own."""


def plain(
    encode: Callable[[str], bytes], decode: Callable[[OctetCursor], str], *, listed: bool = False
) -> WspKind:
    return WspKind(lambda text, field, version: encode(text), decode, listed)


def behind_length(read: Callable[[OctetCursor], str]) -> Callable[[OctetCursor], str]:
    """Return a decoder that applies `read` to the octets behind a length, all of which it must
    use."""

    def decode(cursor: OctetCursor) -> str:
        inner = cursor.inside(cursor.value_length())
        text = read(inner)
        inner.finish()
        return text

    return decode


def is_text(cursor: OctetCursor) -> bool:
    """Whether a text starts at the cursor; it may be empty."""
    first = cursor.peek()
    return first == 0 or 0x20 <= first < 0x80


def tokens(names: Mapping[str, int], *, others: bool = True, listed: bool = False) -> WspKind:
    """Return the kind whose known tokens have numbers; other tokens are written as text."""
    codes = {name.lower(): code for name, code in names.items()}
    shown = {code: name for name, code in names.items()}

    def encode(text: str) -> bytes:
        code = codes.get(text.lower())
        if code is not None:
            return short_integer(code)
        if not others:
            raise ValueError(f"this value has no number in WSP: {text!r}")
        return token_text(text)

    def decode(cursor: OctetCursor) -> str:
        if cursor.peek() < 0x80:
            return cursor.text_string()
        return named(cursor, shown)

    return plain(encode, decode, listed=listed)


def named(cursor: OctetCursor, names: Mapping[int, str]) -> str:
    code = cursor.short_integer()
    if code not in names:
        raise Malformed("this number stands for nothing here", offset=cursor.pos - 1)
    return names[code]


def weighted(
    encode: Callable[[str], bytes],
    decode: Callable[[OctetCursor], str],
    *,
    since: int = 0,
) -> WspKind:
    """Return the kind for an element of an Accept header with its weight: alone if possible, or
    behind a length. Fields with a lower number than `since` have no weights."""

    def encode_element(text: str, field: int, version: Version) -> bytes:
        element, parameters = split_parameters(text)
        names = [name for name, _ in parameters]
        if names not in ([], ["q"]):
            raise ValueError(f"not a weight: {text!r}")
        octets = encode(element)
        weight = q_value(parameters[0][1]) if parameters else b""
        if not weight and (len(octets) == 1 or octets[0] >= 0x20):
            return octets
        if field < since:
            raise ValueError(f"takes no weight: {text!r}")
        return with_length(octets + weight)

    def decode_element(cursor: OctetCursor) -> str:
        if cursor.peek() >= 0x20:
            return decode(cursor)
        return decode_general(cursor)

    @behind_length
    def decode_general(inner: OctetCursor) -> str:
        element = decode(inner)
        return f"{element}; q={inner.q_value()}" if inner.left else element

    return WspKind(encode_element, decode_element, listed=True)
