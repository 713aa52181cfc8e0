"""The kind of value of each well-known header, as text and as octets (WSP 8.4.2)."""

from __future__ import annotations

from lasthop.errors import Malformed
from lasthop.wire.wsp import languages
from lasthop.wire.wsp.applications import name_of, parse_application
from lasthop.wire.wsp.httpdate import parse_http_date
from lasthop.wire.wsp.kinds import WspKind, is_text, plain, tokens, weighted
from lasthop.wire.wsp.media import decode_content_type, media_octets
from lasthop.wire.wsp.parameters import (
    decode_charset,
    decode_field_name,
    encode_charset,
    encode_field_name,
    plain_number,
)
from lasthop.wire.wsp.primitives import (
    TOKEN,
    OctetCursor,
    Version,
    integer,
    long_integer,
    quoted_string,
    short_integer,
    text_string,
    token_text,
)
from lasthop.wire.wsp.structured import (
    decode_challenge,
    decode_content_range,
    decode_credentials,
    decode_directive,
    decode_disposition,
    decode_md5,
    decode_range,
    decode_retry,
    decode_version,
    decode_warning,
    encode_challenge,
    encode_content_range,
    encode_credentials,
    encode_directive,
    encode_disposition,
    encode_md5,
    encode_range,
    encode_retry,
    encode_version,
    encode_warning,
)


def _encode_integer(text: str) -> bytes:
    return integer(plain_number(text))


def _encode_date(text: str) -> bytes:
    return long_integer(parse_http_date(text))


def _encode_text_or_date(text: str) -> bytes:
    try:
        return _encode_date(text)
    except ValueError:
        return text_string(text)


def _decode_text_or_date(cursor: OctetCursor) -> str:
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


def _decode_application(cursor: OctetCursor) -> str:
    return cursor.text_string() if is_text(cursor) else name_of(cursor.integer())


def _decode_accepted_application(cursor: OctetCursor) -> str:
    if cursor.peek() == 0x80:  # Any application.
        cursor.octet()
        return "*"
    return _decode_application(cursor)


def _encode_language(text: str) -> bytes:
    code = languages.CODES.get(text.lower())
    return token_text(text) if code is None else integer(code)


def _decode_language(cursor: OctetCursor) -> str:
    if is_text(cursor):
        return cursor.text_string()
    start = cursor.pos
    code = cursor.integer()
    if code not in languages.LANGUAGES:
        raise Malformed("no language has this number", offset=start)
    return languages.LANGUAGES[code]


_CODINGS = {"gzip": 0, "compress": 1, "deflate": 2}
_CODING = tokens(_CODINGS, listed=True)
_ANY_CODING = tokens({**_CODINGS, "*": 3})


def _encode_media(text: str, field: int, version: Version) -> bytes:
    return media_octets(text, version)


def _encode_small(text: str) -> bytes:
    return short_integer(plain_number(text))


def _decode_small(cursor: OctetCursor) -> str:
    return str(cursor.short_integer())


def _decode_token(cursor: OctetCursor) -> str:
    start = cursor.pos
    text = cursor.text_string()
    if TOKEN.fullmatch(text) is None:
        raise Malformed("not a token", offset=start)
    return text


TEXT = plain(text_string, OctetCursor.text_string)
TEXT_LIST = plain(text_string, OctetCursor.text_string, listed=True)
INTEGER = plain(_encode_integer, lambda cursor: str(cursor.integer()))
SMALL_INTEGER = plain(_encode_small, _decode_small)
DATE = plain(_encode_date, OctetCursor.date)
MEDIA = WspKind(_encode_media, decode_content_type)
FIELD_NAMES = plain(encode_field_name, decode_field_name, listed=True)
CREDENTIALS = plain(encode_credentials, decode_credentials)
CHALLENGE = plain(encode_challenge, decode_challenge)
EXPECT = tokens({"100-continue": 0}, others=False)
METHODS = {"GET": 0x40, "OPTIONS": 0x41, "HEAD": 0x42, "DELETE": 0x43, "TRACE": 0x44} | {
    "POST": 0x60,
    "PUT": 0x61,
}
TOKEN_LIST = plain(token_text, _decode_token, listed=True)

KINDS: dict[str, WspKind] = {
    "Accept": MEDIA._replace(listed=True),
    "Accept-Charset": weighted(encode_charset, decode_charset),
    "Accept-Encoding": weighted(
        lambda text: _ANY_CODING.encode(text, 0, (1, 1)), _ANY_CODING.decode, since=0x3C
    ),
    "Accept-Language": weighted(_encode_language, _decode_language),
    "Accept-Ranges": tokens({"none": 0, "bytes": 1}, listed=True),
    "Age": INTEGER,
    "Allow": tokens(METHODS, others=False, listed=True),
    "Authorization": CREDENTIALS,
    "Cache-Control": WspKind(encode_directive, decode_directive, listed=True),
    "Connection": tokens({"close": 0}, listed=True),
    "Content-Base": TEXT,
    "Content-Encoding": _CODING,
    "Content-Language": plain(_encode_language, _decode_language, listed=True),
    "Content-Length": INTEGER,
    "Content-Location": TEXT,
    "Content-MD5": plain(encode_md5, decode_md5),
    "Content-Range": plain(encode_content_range, decode_content_range),
    "Content-Type": MEDIA,
    "Date": DATE,
    "ETag": TEXT,
    "Expires": DATE,
    "From": TEXT,
    "Host": TEXT,
    "If-Modified-Since": DATE,
    "If-Match": TEXT,
    "If-None-Match": TEXT,
    "If-Range": plain(_encode_text_or_date, _decode_text_or_date),
    "If-Unmodified-Since": DATE,
    "Location": TEXT,
    "Last-Modified": DATE,
    "Max-Forwards": INTEGER,
    "Pragma": tokens({"no-cache": 0}, others=False, listed=True),
    "Proxy-Authenticate": CHALLENGE,
    "Proxy-Authorization": CREDENTIALS,
    "Public": tokens(METHODS, listed=True),
    "Range": plain(encode_range, decode_range),
    "Referer": TEXT,
    "Retry-After": plain(encode_retry, decode_retry),
    "Server": TEXT,
    "Transfer-Encoding": tokens({"chunked": 0}, listed=True),
    "Upgrade": TEXT_LIST,
    "User-Agent": TEXT,
    "Vary": FIELD_NAMES,
    "Via": TEXT_LIST,
    "Warning": plain(encode_warning, decode_warning),
    "WWW-Authenticate": CHALLENGE,
    "Content-Disposition": WspKind(encode_disposition, decode_disposition),
    "X-Wap-Application-Id": plain(_encode_application, _decode_application),
    "X-Wap-Content-URI": TEXT,
    "X-Wap-Initiator-URI": TEXT,
    "Accept-Application": plain(_encode_application, _decode_accepted_application, listed=True),
    "Bearer-Indication": INTEGER,
    "Push-Flag": SMALL_INTEGER,
    "Profile": TEXT,
    "Expect": EXPECT,
    "Trailer": FIELD_NAMES,
    "X-Wap-Tod": DATE,
    "Content-ID": plain(_encode_quoted, OctetCursor.text_value),
    "Encoding-Version": plain(encode_version, decode_version),
    "X-WAP-Security": tokens({"close-subordinate": 0}, others=False),
    "X-Wap-Loc-Invocation": TEXT,
    "X-Wap-Loc-Delivery": TEXT,
}
"""The kind of value by field. Fields that are missing (cookies, TE, profile differences and
warnings) are written as text, and kept as they came when they are read."""
