"""What the value of each well-known header can be, as text and as octets (WSP 8.4.2).

A kind turns text into octets, and raises ValueError where a value has no binary form: the header
is then sent as text, name and all. It turns octets into text, and raises Malformed where they mean
nothing to us: the header is then kept as it came. `KINDS` names the kind of every field.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lasthop.errors import Malformed
from lasthop.wire.uintvar import encode_uintvar
from lasthop.wire.wsp import languages
from lasthop.wire.wsp.applications import name_of, parse_application
from lasthop.wire.wsp.httpdate import parse_http_date
from lasthop.wire.wsp.media import decode_content_type, media_octets
from lasthop.wire.wsp.parameters import (
    decode_charset,
    decode_field_name,
    decode_parameters,
    encode_charset,
    encode_field_name,
    encode_parameters,
    join_parameters,
    plain_number,
    split_parameters,
)
from lasthop.wire.wsp.primitives import (
    TOKEN,
    Cursor,
    Version,
    integer,
    long_integer,
    q_value,
    quoted_string,
    short_integer,
    text_string,
    token_text,
    version_value,
    with_length,
)


class Kind(NamedTuple):
    """How a value is written and read."""

    encode: Callable[[str, int, Version], bytes]
    """From the text, the number of the field and the client's encoding version."""
    decode: Callable[[Cursor], str]
    listed: bool = False
    """Whether a comma separates elements, each of which is a field of its own."""


def _plain(
    encode: Callable[[str], bytes], decode: Callable[[Cursor], str], *, listed: bool = False
) -> Kind:
    return Kind(lambda text, field, version: encode(text), decode, listed)


def _behind_length(read: Callable[[Cursor], str]) -> Callable[[Cursor], str]:
    """What `read` makes of the octets behind a length, all of which it must use."""

    def decode(cursor: Cursor) -> str:
        inner = cursor.inside(cursor.value_length())
        text = read(inner)
        inner.finish()
        return text

    return decode


def is_text(cursor: Cursor) -> bool:
    """Whether a text starts here, which may be empty."""
    first = cursor.peek()
    return first == 0 or 0x20 <= first < 0x80


def _encode_integer(text: str) -> bytes:
    return integer(plain_number(text))


def _encode_date(text: str) -> bytes:
    return long_integer(parse_http_date(text))


def _encode_text_or_date(text: str) -> bytes:
    try:
        return _encode_date(text)
    except ValueError:
        return text_string(text)


def _decode_text_or_date(cursor: Cursor) -> str:
    return cursor.text_string() if is_text(cursor) else cursor.date()


def _encode_quoted(text: str) -> bytes:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return quoted_string(text)


def _encode_application(text: str) -> bytes:
    if text == "*":
        return short_integer(0)
    try:
        application = parse_application(text)
    except Malformed as error:
        raise ValueError(str(error)) from None
    return integer(application) if isinstance(application, int) else text_string(application)


def _decode_application(cursor: Cursor) -> str:
    return cursor.text_string() if is_text(cursor) else name_of(cursor.integer())


def _decode_accepted_application(cursor: Cursor) -> str:
    if cursor.peek() == 0x80:  # any application
        cursor.octet()
        return "*"
    return _decode_application(cursor)


def _tokens(names: Mapping[str, int], *, others: bool = True, listed: bool = False) -> Kind:
    """A number for some tokens, text for the others."""
    codes = {name.lower(): code for name, code in names.items()}
    shown = {code: name for name, code in names.items()}

    def encode(text: str) -> bytes:
        code = codes.get(text.lower())
        if code is not None:
            return short_integer(code)
        if not others:
            raise ValueError(f"has no number: {text!r}")
        return token_text(text)

    def decode(cursor: Cursor) -> str:
        if cursor.peek() < 0x80:
            return cursor.text_string()
        return _named(cursor, shown)

    return _plain(encode, decode, listed=listed)


def _named(cursor: Cursor, names: Mapping[int, str]) -> str:
    code = cursor.short_integer()
    if code not in names:
        raise Malformed("a number without a meaning", offset=cursor.pos - 1)
    return names[code]


def _weighted(
    encode: Callable[[str], bytes],
    decode: Callable[[Cursor], str],
    *,
    since: int = 0,
) -> Kind:
    """An element of an Accept header with its weight: alone if it can be, or behind a length.
    Fields with a lower number than `since` have no weights."""

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

    def decode_element(cursor: Cursor) -> str:
        if cursor.peek() >= 0x20:
            return decode(cursor)
        return decode_general(cursor)

    @_behind_length
    def decode_general(inner: Cursor) -> str:
        element = decode(inner)
        return f"{element}; q={inner.q_value()}" if inner.left else element

    return Kind(encode_element, decode_element, listed=True)


def _encode_language(text: str) -> bytes:
    code = languages.CODES.get(text.lower())
    return token_text(text) if code is None else integer(code)


def _decode_language(cursor: Cursor) -> str:
    if is_text(cursor):
        return cursor.text_string()
    start = cursor.pos
    code = cursor.integer()
    if code not in languages.LANGUAGES:
        raise Malformed("a language without a name", offset=start)
    return languages.LANGUAGES[code]


_CODINGS = {"gzip": 0, "compress": 1, "deflate": 2}
_CODING = _tokens(_CODINGS, listed=True)
_ANY_CODING = _tokens({**_CODINGS, "*": 3})


def _encode_media(text: str, field: int, version: Version) -> bytes:
    return media_octets(text, version)


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


def _encode_directive(text: str, field: int, version: Version) -> bytes:
    """WSP 8.4.2.15."""
    name, equals, argument = (part.strip() for part in text.partition("="))
    name = name.lower()
    code = _DIRECTIVES.get(name)
    if code is None or (name == "s-maxage" and field != _NEWEST_CACHE_CONTROL):
        if equals:
            raise ValueError(f"has no number: {text!r}")
        return token_text(name)
    if not equals:
        return short_integer(code)
    if name in _WITH_SECONDS:
        return with_length(short_integer(code) + integer(plain_number(argument.strip('"'))))
    if name in _WITH_FIELDS:
        named = [each.strip() for each in argument.strip('"').split(",")]
        return with_length(short_integer(code) + b"".join(map(encode_field_name, named)))
    raise ValueError(f"takes no argument: {text!r}")


def _decode_directive(cursor: Cursor) -> str:
    if cursor.peek() >= 0x80:
        return _named(cursor, _DIRECTIVE_NAMES)
    if is_text(cursor):
        return cursor.text_string()
    return _decode_argument(cursor)


@_behind_length
def _decode_argument(inner: Cursor) -> str:
    name = _named(inner, _DIRECTIVE_NAMES)
    if name in _WITH_SECONDS:
        return f"{name}={inner.integer()}"
    found = []
    while inner.left:
        found.append(decode_field_name(inner))
    return f'{name}="{", ".join(found)}"'


_DISPOSITIONS = {"form-data": 0, "attachment": 1, "inline": 2}
_DISPOSITION = _tokens(_DISPOSITIONS)


def _encode_disposition(text: str, field: int, version: Version) -> bytes:
    """WSP 8.4.2.53: always behind a length."""
    head, parameters = split_parameters(text)
    octets = _DISPOSITION.encode(head, field, version)
    return with_length(octets + encode_parameters(parameters, version))


@_behind_length
def _decode_disposition(inner: Cursor) -> str:
    head = _DISPOSITION.decode(inner)
    return join_parameters(head, decode_parameters(inner))


def _encode_md5(text: str) -> bytes:
    try:
        digest = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if len(digest) != 16:
        raise ValueError("a digest has 16 octets")
    return with_length(digest)


@_behind_length
def _decode_md5(inner: Cursor) -> str:
    if inner.left != 16:
        raise Malformed("a digest has 16 octets", offset=inner.pos)
    return base64.b64encode(inner.rest()).decode()


_UNKNOWN_LENGTH = 0x80


def _encode_content_range(text: str) -> bytes:
    """WSP 8.4.2.23: the first octet and the length of the whole; the last octet is left to be
    found from the length of what came."""
    found = re.fullmatch(r"bytes (\d{1,10})-\d{0,10}/(\d{1,10}|\*)", text, re.ASCII)
    if found is None:
        raise ValueError(f"not a range: {text!r}")
    first, whole = found.groups()
    length = bytes((_UNKNOWN_LENGTH,)) if whole == "*" else encode_uintvar(int(whole))
    return with_length(encode_uintvar(int(first)) + length)


@_behind_length
def _decode_content_range(inner: Cursor) -> str:
    first = inner.uintvar()
    if inner.left == 1 and inner.peek() == _UNKNOWN_LENGTH:
        inner.octet()
        return f"bytes {first}-/*"
    return f"bytes {first}-/{inner.uintvar()}"


def _encode_range(text: str) -> bytes:
    """WSP 8.4.2.42: from an octet, or the last octets."""
    found = re.fullmatch(r"bytes=(\d{0,10})-(\d{0,10})", text, re.ASCII)
    first, last = found.groups() if found is not None else ("", "")
    if first:
        numbers = [int(each) for each in (first, last) if each]
        return with_length(short_integer(0) + b"".join(map(encode_uintvar, numbers)))
    if last:
        return with_length(short_integer(1) + encode_uintvar(int(last)))
    raise ValueError(f"not a range: {text!r}")


@_behind_length
def _decode_range(inner: Cursor) -> str:
    if _named(inner, {0: "range", 1: "suffix"}) == "suffix":
        return f"bytes=-{inner.uintvar()}"
    first = inner.uintvar()
    return f"bytes={first}-{inner.uintvar() if inner.left else ''}"


def _encode_retry(text: str) -> bytes:
    if text.isascii() and text.isdigit():
        return with_length(short_integer(1) + _encode_integer(text))
    return with_length(short_integer(0) + _encode_date(text))


@_behind_length
def _decode_retry(inner: Cursor) -> str:
    if _named(inner, {0: "date", 1: "seconds"}) == "seconds":
        return str(inner.integer())
    return inner.date()


def _encode_credentials(text: str) -> bytes:
    """WSP 8.4.2.5: only Basic has a number; other schemes are rare enough for text."""
    scheme, _, secret = text.partition(" ")
    try:
        plain = base64.b64decode(secret.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    user, colon, password = plain.partition(":")
    if scheme.lower() != "basic" or not colon:
        raise ValueError("not Basic credentials")
    return with_length(short_integer(0) + text_string(user) + text_string(password))


@_behind_length
def _decode_credentials(inner: Cursor) -> str:
    if inner.octet() != 0x80:
        raise Malformed("a scheme without a number", offset=inner.pos - 1)
    plain = f"{inner.text_string()}:{inner.text_string()}"
    return "Basic " + base64.b64encode(plain.encode()).decode()


def _encode_challenge(text: str) -> bytes:
    found = re.fullmatch(r'basic realm="([^"\\]*)"', text, re.IGNORECASE)
    if found is None:
        raise ValueError("not a Basic challenge")
    return with_length(short_integer(0) + text_string(found.group(1)))


@_behind_length
def _decode_challenge(inner: Cursor) -> str:
    if inner.octet() != 0x80:
        raise Malformed("a scheme without a number", offset=inner.pos - 1)
    realm = inner.text_string()
    if '"' in realm or "\\" in realm:
        raise Malformed("a realm with a quotation mark", offset=inner.pos)
    return f'Basic realm="{realm}"'


def _encode_warning(text: str) -> bytes:
    """WSP 8.4.2.51: a code alone, or with who warns and of what."""
    found = re.fullmatch(r'(\d{1,3})(?: (\S+) "([^"\\]*)")?', text, re.ASCII)
    if found is None:
        raise ValueError(f"not a warning: {text!r}")
    code, agent, what = found.groups()
    octets = short_integer(plain_number(code))
    if agent is None:
        return octets
    return with_length(octets + text_string(agent) + text_string(what))


def _decode_warning(cursor: Cursor) -> str:
    if cursor.peek() >= 0x80:
        return str(cursor.short_integer())
    return _decode_whole_warning(cursor)


@_behind_length
def _decode_whole_warning(inner: Cursor) -> str:
    code, agent, what = inner.short_integer(), inner.text_string(), inner.text_string()
    if not agent or " " in agent or '"' in what or "\\" in what:
        raise Malformed("not a warning", offset=inner.pos)
    return f'{code} {agent} "{what}"'


def _encode_version(text: str) -> bytes:
    """WSP 8.4.2.70: of the default code page, or of another one that is named first."""
    page, space, version = text.rpartition(" ")
    if not space:
        return version_value(text)
    return with_length(short_integer(plain_number(page)) + version_value(version))


def _decode_version(cursor: Cursor) -> str:
    if cursor.peek() >= 0x20:
        return cursor.version_value()
    return _decode_page_version(cursor)


@_behind_length
def _decode_page_version(inner: Cursor) -> str:
    page = inner.short_integer()
    return f"{page} {inner.version_value()}" if inner.left else str(page)


def _encode_small(text: str) -> bytes:
    return short_integer(plain_number(text))


def _decode_small(cursor: Cursor) -> str:
    return str(cursor.short_integer())


def _decode_token(cursor: Cursor) -> str:
    start = cursor.pos
    text = cursor.text_string()
    if TOKEN.fullmatch(text) is None:
        raise Malformed("not a token", offset=start)
    return text


TEXT = _plain(text_string, Cursor.text_string)
TEXT_LIST = _plain(text_string, Cursor.text_string, listed=True)
INTEGER = _plain(_encode_integer, lambda cursor: str(cursor.integer()))
SMALL_INTEGER = _plain(_encode_small, _decode_small)
DATE = _plain(_encode_date, Cursor.date)
MEDIA = Kind(_encode_media, decode_content_type)
FIELD_NAMES = _plain(encode_field_name, decode_field_name, listed=True)
CREDENTIALS = _plain(_encode_credentials, _decode_credentials)
CHALLENGE = _plain(_encode_challenge, _decode_challenge)
EXPECT = _tokens({"100-continue": 0}, others=False)
METHODS = {"GET": 0x40, "OPTIONS": 0x41, "HEAD": 0x42, "DELETE": 0x43, "TRACE": 0x44} | {
    "POST": 0x60,
    "PUT": 0x61,
}
TOKEN_LIST = _plain(token_text, _decode_token, listed=True)

KINDS: dict[str, Kind] = {
    "Accept": MEDIA._replace(listed=True),
    "Accept-Charset": _weighted(encode_charset, decode_charset),
    "Accept-Encoding": _weighted(
        lambda text: _ANY_CODING.encode(text, 0, (1, 1)), _ANY_CODING.decode, since=0x3C
    ),
    "Accept-Language": _weighted(_encode_language, _decode_language),
    "Accept-Ranges": _tokens({"none": 0, "bytes": 1}, listed=True),
    "Age": INTEGER,
    "Allow": _tokens(METHODS, others=False, listed=True),
    "Authorization": CREDENTIALS,
    "Cache-Control": Kind(_encode_directive, _decode_directive, listed=True),
    "Connection": _tokens({"close": 0}, listed=True),
    "Content-Base": TEXT,
    "Content-Encoding": _CODING,
    "Content-Language": _plain(_encode_language, _decode_language, listed=True),
    "Content-Length": INTEGER,
    "Content-Location": TEXT,
    "Content-MD5": _plain(_encode_md5, _decode_md5),
    "Content-Range": _plain(_encode_content_range, _decode_content_range),
    "Content-Type": MEDIA,
    "Date": DATE,
    "ETag": TEXT,
    "Expires": DATE,
    "From": TEXT,
    "Host": TEXT,
    "If-Modified-Since": DATE,
    "If-Match": TEXT,
    "If-None-Match": TEXT,
    "If-Range": _plain(_encode_text_or_date, _decode_text_or_date),
    "If-Unmodified-Since": DATE,
    "Location": TEXT,
    "Last-Modified": DATE,
    "Max-Forwards": INTEGER,
    "Pragma": _tokens({"no-cache": 0}, others=False, listed=True),
    "Proxy-Authenticate": CHALLENGE,
    "Proxy-Authorization": CREDENTIALS,
    "Public": _tokens(METHODS, listed=True),
    "Range": _plain(_encode_range, _decode_range),
    "Referer": TEXT,
    "Retry-After": _plain(_encode_retry, _decode_retry),
    "Server": TEXT,
    "Transfer-Encoding": _tokens({"chunked": 0}, listed=True),
    "Upgrade": TEXT_LIST,
    "User-Agent": TEXT,
    "Vary": FIELD_NAMES,
    "Via": TEXT_LIST,
    "Warning": _plain(_encode_warning, _decode_warning),
    "WWW-Authenticate": CHALLENGE,
    "Content-Disposition": Kind(_encode_disposition, _decode_disposition),
    "X-Wap-Application-Id": _plain(_encode_application, _decode_application),
    "X-Wap-Content-URI": TEXT,
    "X-Wap-Initiator-URI": TEXT,
    "Accept-Application": _plain(_encode_application, _decode_accepted_application, listed=True),
    "Bearer-Indication": INTEGER,
    "Push-Flag": SMALL_INTEGER,
    "Profile": TEXT,
    "Expect": EXPECT,
    "Trailer": FIELD_NAMES,
    "X-Wap-Tod": DATE,
    "Content-ID": _plain(_encode_quoted, Cursor.text_value),
    "Encoding-Version": _plain(_encode_version, _decode_version),
    "X-WAP-Security": _tokens({"close-subordinate": 0}, others=False),
    "X-Wap-Loc-Invocation": TEXT,
    "X-Wap-Loc-Delivery": TEXT,
}
"""By field. Those that are missing (cookies, TE, profile differences and warnings) are written as
text, and kept as they came when they are read."""
