"""Header values with a grammar of their own: caching, ranges, credentials, warnings.

All raise as a kind does: ValueError for text without a binary form, Malformed for octets without a
known meaning.
"""

from __future__ import annotations

import base64
import binascii
import re

from lasthop.errors import Malformed
from lasthop.wire.uintvar import encode_uintvar
from lasthop.wire.wsp.httpdate import parse_http_date
from lasthop.wire.wsp.kinds import behind_length, is_text, named, tokens
from lasthop.wire.wsp.parameters import (
    decode_field_name,
    decode_parameters,
    encode_field_name,
    encode_parameters,
    join_parameters,
    plain_number,
    split_parameters,
)
from lasthop.wire.wsp.primitives import (
    OctetCursor,
    Version,
    integer,
    long_integer,
    short_integer,
    text_string,
    token_text,
    version_value,
    with_length,
)

_DIRECTIVES = {
    "no-cache": 0,
    "no-store": 1,
    "max-age": 2,
    "max-stale": 3,
    "min-fresh": 4,
    "only-if-cached": 5,
    "public": 6,
    "private": 7,
    "no-transform": 8,
    "must-revalidate": 9,
    "proxy-revalidate": 10,
    "s-maxage": 11,
}
_DIRECTIVE_NAMES = {code: name for name, code in _DIRECTIVES.items()}
_WITH_SECONDS = frozenset({"max-age", "max-stale", "min-fresh", "s-maxage"})
_WITH_FIELDS = frozenset({"no-cache", "private"})
_NEWEST_CACHE_CONTROL = 0x47


def encode_directive(text: str, field: int, version: Version) -> bytes:
    """Encode a directive of Cache-Control (WSP 8.4.2.15)."""
    name, equals, argument = (part.strip() for part in text.partition("="))
    name = name.lower()
    code = _DIRECTIVES.get(name)
    if code is None or (name == "s-maxage" and field != _NEWEST_CACHE_CONTROL):
        if equals:
            raise ValueError(f"this directive has no number in WSP: {text!r}")
        return token_text(name)
    if not equals:
        return short_integer(code)
    if name in _WITH_SECONDS:
        return with_length(short_integer(code) + integer(plain_number(argument.strip('"'))))
    if name in _WITH_FIELDS:
        names = [each.strip() for each in argument.strip('"').split(",")]
        return with_length(short_integer(code) + b"".join(map(encode_field_name, names)))
    raise ValueError(f"takes no argument: {text!r}")


def decode_directive(cursor: OctetCursor) -> str:
    if cursor.peek() >= 0x80:
        return named(cursor, _DIRECTIVE_NAMES)
    if is_text(cursor):
        return cursor.text_string()
    return _decode_argument(cursor)


@behind_length
def _decode_argument(inner: OctetCursor) -> str:
    name = named(inner, _DIRECTIVE_NAMES)
    if name in _WITH_SECONDS:
        return f"{name}={inner.integer()}"
    found = []
    while inner.left:
        found.append(decode_field_name(inner))
    return f'{name}="{", ".join(found)}"'


_DISPOSITIONS = {"form-data": 0, "attachment": 1, "inline": 2}
_DISPOSITION = tokens(_DISPOSITIONS)


def encode_disposition(text: str, field: int, version: Version) -> bytes:
    """Encode a Content-Disposition, always behind a length (WSP 8.4.2.53)."""
    head, parameters = split_parameters(text)
    octets = _DISPOSITION.encode(head, field, version)
    return with_length(octets + encode_parameters(parameters, version))


@behind_length
def decode_disposition(inner: OctetCursor) -> str:
    head = _DISPOSITION.decode(inner)
    return join_parameters(head, decode_parameters(inner))


def encode_md5(text: str) -> bytes:
    try:
        digest = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if len(digest) != 16:
        raise ValueError("a digest must have 16 octets")
    return with_length(digest)


@behind_length
def decode_md5(inner: OctetCursor) -> str:
    if inner.left != 16:
        raise Malformed("a digest must have 16 octets", offset=inner.pos)
    return base64.b64encode(inner.rest()).decode()


_UNKNOWN_LENGTH = 0x80


def encode_content_range(text: str) -> bytes:
    """Encode a Content-Range: the first octet and the length of the whole (WSP 8.4.2.23). The last
    octet follows from the length of the content."""
    found = re.fullmatch(r"bytes (\d{1,10})-\d{0,10}/(\d{1,10}|\*)", text, re.ASCII)
    if found is None:
        raise ValueError(f"not a range: {text!r}")
    first, whole = found.groups()
    length = bytes((_UNKNOWN_LENGTH,)) if whole == "*" else encode_uintvar(int(whole))
    return with_length(encode_uintvar(int(first)) + length)


@behind_length
def decode_content_range(inner: OctetCursor) -> str:
    first = inner.uintvar()
    if inner.left == 1 and inner.peek() == _UNKNOWN_LENGTH:
        inner.octet()
        return f"bytes {first}-/*"
    return f"bytes {first}-/{inner.uintvar()}"


def encode_range(text: str) -> bytes:
    """Encode a Range: from an octet on, or the last octets (WSP 8.4.2.42)."""
    found = re.fullmatch(r"bytes=(\d{0,10})-(\d{0,10})", text, re.ASCII)
    first, last = found.groups() if found is not None else ("", "")
    if first:
        numbers = [int(each) for each in (first, last) if each]
        return with_length(short_integer(0) + b"".join(map(encode_uintvar, numbers)))
    if last:
        return with_length(short_integer(1) + encode_uintvar(int(last)))
    raise ValueError(f"not a range: {text!r}")


@behind_length
def decode_range(inner: OctetCursor) -> str:
    if named(inner, {0: "range", 1: "suffix"}) == "suffix":
        return f"bytes=-{inner.uintvar()}"
    first = inner.uintvar()
    return f"bytes={first}-{inner.uintvar() if inner.left else ''}"


def encode_retry(text: str) -> bytes:
    if text.isascii() and text.isdigit():
        return with_length(short_integer(1) + integer(plain_number(text)))
    return with_length(short_integer(0) + long_integer(parse_http_date(text)))


@behind_length
def decode_retry(inner: OctetCursor) -> str:
    if named(inner, {0: "date", 1: "seconds"}) == "seconds":
        return str(inner.integer())
    return inner.date()


def encode_credentials(text: str) -> bytes:
    """Encode credentials (WSP 8.4.2.5): only Basic has a number; other schemes are rare and sent as
    text."""
    scheme, _, secret = text.partition(" ")
    try:
        plain = base64.b64decode(secret.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    user, colon, password = plain.partition(":")
    if scheme.lower() != "basic" or not colon:
        raise ValueError("not Basic credentials")
    return with_length(short_integer(0) + text_string(user) + text_string(password))


@behind_length
def decode_credentials(inner: OctetCursor) -> str:
    if inner.octet() != 0x80:
        raise Malformed("only the scheme Basic is known here", offset=inner.pos - 1)
    plain = f"{inner.text_string()}:{inner.text_string()}"
    return "Basic " + base64.b64encode(plain.encode()).decode()


def encode_challenge(text: str) -> bytes:
    found = re.fullmatch(r'basic realm="([^"\\]*)"', text, re.IGNORECASE)
    if found is None:
        raise ValueError("not a Basic challenge")
    return with_length(short_integer(0) + text_string(found.group(1)))


@behind_length
def decode_challenge(inner: OctetCursor) -> str:
    if inner.octet() != 0x80:
        raise Malformed("only the scheme Basic is known here", offset=inner.pos - 1)
    realm = inner.text_string()
    if '"' in realm or "\\" in realm:
        raise Malformed("a realm must not contain a quotation mark", offset=inner.pos)
    return f'Basic realm="{realm}"'


def encode_warning(text: str) -> bytes:
    """Encode a Warning: a code alone, or with the agent and the text (WSP 8.4.2.51)."""
    found = re.fullmatch(r'(\d{1,3})(?: (\S+) "([^"\\]*)")?', text, re.ASCII)
    if found is None:
        raise ValueError(f"not a warning: {text!r}")
    code, agent, what = found.groups()
    octets = short_integer(plain_number(code))
    if agent is None:
        return octets
    return with_length(octets + text_string(agent) + text_string(what))


def decode_warning(cursor: OctetCursor) -> str:
    if cursor.peek() >= 0x80:
        return str(cursor.short_integer())
    return _decode_whole_warning(cursor)


@behind_length
def _decode_whole_warning(inner: OctetCursor) -> str:
    code, agent, what = inner.short_integer(), inner.text_string(), inner.text_string()
    if not agent or " " in agent or '"' in what or "\\" in what:
        raise Malformed("not a warning", offset=inner.pos)
    return f'{code} {agent} "{what}"'


def encode_version(text: str) -> bytes:
    """Encode an Encoding-Version, of the default code page or of one that is named first (WSP
    8.4.2.70)."""
    page, space, version = text.rpartition(" ")
    if not space:
        return version_value(text)
    return with_length(short_integer(plain_number(page)) + version_value(version))


def decode_version(cursor: OctetCursor) -> str:
    if cursor.peek() >= 0x20:
        return cursor.version_value()
    return _decode_page_version(cursor)


@behind_length
def _decode_page_version(inner: OctetCursor) -> str:
    page = inner.short_integer()
    return f"{page} {inner.version_value()}" if inner.left else str(page)
