"""Message handling: turns a push as its publisher wrote it into one that its client accepts.

The rules are those of the Push Proxy Gateway, 5.1.2.1: content with a no-transform directive is
left alone; other content gets the form that the client accepts (binary over WSP unless the client
is known to read the text); headers are revised to say what is really sent; a registered application
is named by its number. What cannot be adapted raises `NotTransformable`.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import msgspec

from lasthop.errors import LasthopError, Malformed, NotTransformable, TooLarge
from lasthop.wire.charsets import Charset, named
from lasthop.wire.ota.terminal import Terminal
from lasthop.wire.pap.mime import MediaType, parse_media_type
from lasthop.wire.pap.multipart import boundary_of, read_entity, split
from lasthop.wire.wbxml.decoder import decode
from lasthop.wire.wbxml.document import DEFAULT_LIMITS, WbxmlDocument
from lasthop.wire.wbxml.encoder import encode
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import LANGUAGES
from lasthop.wire.wbxml.plain import compile_plain
from lasthop.wire.wbxml.validity import check
from lasthop.wire.wbxml.xml_reader import read_xml
from lasthop.wire.wbxml.xml_writer import write_xml
from lasthop.wire.wsp.applications import (
    Application,
    name_of,
    over_the_air,
    parse_application,
)
from lasthop.wire.wsp.headers import Header
from lasthop.wire.wsp.multipart import MultipartEntry, encode_multipart

Headers = tuple[tuple[str, str], ...]

MAX_DEPTH = 4
"""The largest number of levels of multiparts within multiparts: a message, its alternatives, their
pictures."""

SMALL = 8 * 1024
"""The largest number of octets in a push whose adapted form is cached."""

WORTH_DEFLATING = 128
"""The smallest size, in octets, of content that is deflated: with less, the header that names the
coding costs as much as deflating saves."""

WIRED = frozenset(
    {
        "connection",
        "content-length",
        "content-transfer-encoding",
        "host",
        "keep-alive",
        "mime-version",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that are about the wired side, or about a length that every OTA protocol states
itself."""

ABOUT_OCTETS = frozenset({"content-md5", "etag", "content-range", "accept-ranges"})
"""Headers that are no longer true once a single octet of the content is changed; they are removed
then (PPG service, 5.1.2.1.1)."""

APPLICATION = "x-wap-application-id"
CODING = "content-encoding"

_BY_TEXT = {language.text_type: language for language in LANGUAGES.values()}
_BY_BINARY = {language.binary_type: language for language in LANGUAGES.values()}


class PushContent(msgspec.Struct, frozen=True, gc=False):
    """A push message: content with its headers."""

    content_type: str
    headers: Headers = ()
    body: bytes = b""


def for_wsp(push: PushContent, terminal: Terminal) -> PushContent:
    """Return the push for OTA-WSP: compact where a compact form is specified (5.1.2.1.1.1)."""
    if len(push.body) > SMALL:
        return _made_for_wsp(push, terminal)
    recipe = _recipe(push.content_type, push.headers, terminal)
    if recipe is None:
        return _for_wsp(push, terminal)
    language, headers = recipe
    body = _small_binary(push.body, language)
    _check_size(body, terminal)
    return PushContent(language.binary_type, headers, body)


@lru_cache(maxsize=512)
def _for_wsp(push: PushContent, terminal: Terminal) -> PushContent:
    """Return the push for OTA-WSP from a cache: for a group the same push is needed again and
    again."""
    return _made_for_wsp(push, terminal)


@lru_cache(maxsize=256)
def _recipe(
    content_type: str, headers: Headers, terminal: Terminal
) -> tuple[Language, Headers] | None:
    """Return the language and the headers over the air for text that is compiled and has no charset
    or coding of its own; None for any other push. Most pushes have these in common."""
    try:
        media = _media(content_type)
        language = _BY_TEXT.get(media.essence)
        if (
            language is None
            or "charset" in media.parameters
            or _value(headers, CODING) is not None
            or _untouchable(headers)
            or terminal.takes(media.essence)
            or (terminal.accept and not terminal.takes(language.binary_type))
        ):
            return None
        compiled = PushContent(language.binary_type, _about_another(headers))
        return language, _revised(compiled, terminal).headers
    except NotTransformable:
        return None


def _made_for_wsp(push: PushContent, terminal: Terminal) -> PushContent:
    if not _untouchable(push.headers):
        push = _adapted(push, terminal, compact=True, depth=0)
    return _revised(push, terminal)


def for_http(push: PushContent, terminal: Terminal) -> PushContent:
    """Return the push for OTA-HTTP: in a form that the client accepts, deflated if the client can
    undo that."""
    if not _untouchable(push.headers):
        push = _adapted(push, terminal, compact=False, depth=0)
        push = _deflated(push, terminal)
    return _revised(push, terminal)


def wsp_headers(push: PushContent) -> tuple[Header, ...]:
    """Return the headers in the form that the binary encoder takes."""
    return tuple(Header(name, value) for name, value in push.headers)


def application_of(push: PushContent) -> Application | None:
    """Return the application of an adapted push; None for the one that its client assumes."""
    text = _value(push.headers, APPLICATION)
    return None if text is None else parse_application(text)


def _untouchable(headers: Headers) -> bool:
    """Whether the content has a no-transform directive (RFC 2616, 14.9.5), and must be left alone
    (PPG service, 5.1.2.1.1)."""
    return any(
        directive.strip().lower() == "no-transform"
        for name, value in headers
        if name.lower() == "cache-control"
        for directive in value.split(",")
    )


def _adapted(push: PushContent, terminal: Terminal, *, compact: bool, depth: int) -> PushContent:
    """Return the content in the form that the client accepts; unchanged if nothing is known of the
    client."""
    media = _media(push.content_type)
    if compact and media.essence.startswith("multipart/"):
        return _compact_multipart(push, media, terminal, depth)
    if terminal.takes(media.essence):
        return push
    unknown = not terminal.accept
    language = _BY_TEXT.get(media.essence)
    if language is not None and ((unknown and compact) or terminal.takes(language.binary_type)):
        return _compiled(push, media, language)
    language = _BY_BINARY.get(media.essence)
    if language is not None and terminal.takes(language.text_type):
        return _decompiled(push, language)
    if not unknown:
        raise NotTransformable(
            "the client accepts no form of this content", content_type=media.essence
        )
    return push


def _media(content_type: str) -> MediaType:
    try:
        return parse_media_type(content_type)
    except LasthopError as error:
        raise NotTransformable(f"the content cannot be adapted: {error}") from None


def _compiled(push: PushContent, media: MediaType, language: Language) -> PushContent:
    """Compile XML to WBXML; raise NotTransformable."""
    push = _undone(push)
    name = media.parameters.get("charset")
    charset = named(name) if name else None
    if name and charset is None:
        unknown = Malformed("the character set is not known", charset=name)
        raise NotTransformable(f"the content cannot be compiled: {unknown}")
    body = _binary(push.body, language, charset)
    return PushContent(language.binary_type, _about_another(push.headers), body)


@lru_cache(maxsize=512)
def _small_binary(text: bytes, language: Language) -> bytes:
    octets = compile_plain(text, language)
    return _binary(text, language) if octets is None else octets


def _binary(text: bytes, language: Language, charset: Charset | None = None) -> bytes:
    try:
        document = read_xml(text, language=language, charset=charset)
        check(document)
        return encode(document)
    except (Malformed, TooLarge) as error:
        raise NotTransformable(f"the content cannot be compiled: {error}") from None


def _decompiled(push: PushContent, language: Language) -> PushContent:
    """Decompile WBXML to XML, for a client that reads only XML; raise NotTransformable."""
    push = _undone(push)
    try:
        document = decode(push.body)
        check(WbxmlDocument(language, document.root))
        text = write_xml(document)
    except (Malformed, TooLarge) as error:
        raise NotTransformable(f"the content cannot be read: {error}") from None
    media = f"{language.text_type}; charset=utf-8"
    return PushContent(media, _about_another(push.headers), text.encode())


def _compact_multipart(
    push: PushContent, media: MediaType, terminal: Terminal, depth: int
) -> PushContent:
    """Encode a MIME multipart as WSP's binary multipart, whose parts are adapted likewise."""
    if depth >= MAX_DEPTH:
        raise NotTransformable("multiparts are nested too deeply", limit=MAX_DEPTH)
    push = _undone(push)
    try:
        parts = [read_entity(part) for part in split(push.body, boundary_of(media))]
    except LasthopError as error:
        raise NotTransformable(f"the parts cannot be read: {error}") from None
    entries = []
    for entity in parts:
        headers = tuple(pair for pair in entity.headers if pair[0].lower() != "content-type")
        part = PushContent(
            entity.content_type or "text/plain; charset=us-ascii", headers, entity.body
        )
        if not _untouchable(headers):
            part = _adapted(part, terminal, compact=True, depth=depth + 1)
        kept = tuple(Header(n, v) for n, v in part.headers if n.lower() not in WIRED)
        entries.append(MultipartEntry(part.content_type, kept, part.body))
    try:
        body = encode_multipart(entries, version=terminal.encoding_version)
    except (Malformed, TooLarge) as error:
        raise NotTransformable(f"the parts cannot be encoded: {error}") from None
    parameters = "".join(
        f"; {name}={value}" if value.isalnum() else f'; {name}="{value}"'
        for name, value in media.parameters.items()
        if name != "boundary"
    )
    content_type = f"application/vnd.wap.multipart.{media.essence[10:]}{parameters}"
    return PushContent(content_type, _about_another(push.headers), body)


def _undone(push: PushContent) -> PushContent:
    """Return the content without its codings, so that it can be read."""
    coding = _value(push.headers, CODING)
    if coding is None or coding.strip().lower() == "identity":
        return push
    body = push.body
    for name in reversed([word.strip().lower() for word in coding.split(",")]):
        body = inflate(body, name, limit=DEFAULT_LIMITS.size)
    headers = tuple(pair for pair in push.headers if pair[0].lower() != CODING)
    return PushContent(push.content_type, _about_another(headers), body)


def inflate(body: bytes, coding: str, *, limit: int) -> bytes:
    """Undo a content coding; raise NotTransformable, also for more than `limit` octets."""
    if coding in ("gzip", "x-gzip"):
        attempts: tuple[int, ...] = (31,)
    elif coding == "deflate":
        attempts = (15, -15)  # Wrapped as in HTTP, or bare as some peers send it.
    else:
        raise NotTransformable("the content coding is not supported", coding=coding[:40])
    for window in attempts:
        machine = zlib.decompressobj(window)
        try:
            found = machine.decompress(body, limit + 1)
        except zlib.error:
            continue
        if len(found) > limit:
            raise NotTransformable("the content is too large", limit=limit)
        if machine.eof:
            return found
    raise NotTransformable(f"the content is not {coding}")


def _deflated(push: PushContent, terminal: Terminal) -> PushContent:
    """Deflate the content for a client that undoes it (5.1.2.1.1.2), if that saves octets."""
    if "deflate" not in terminal.codings or len(push.body) < WORTH_DEFLATING:
        return push
    if _value(push.headers, CODING) is not None:
        return push
    machine = zlib.compressobj(9, zlib.DEFLATED, -15 if terminal.raw_deflate else 15)
    body = machine.compress(push.body) + machine.flush()
    if len(body) >= len(push.body):
        return push
    headers = (*_about_another(push.headers), ("Content-Encoding", "deflate"))
    return PushContent(push.content_type, headers, body)


def _about_another(headers: Headers) -> Headers:
    return tuple(pair for pair in headers if pair[0].lower() not in ABOUT_OCTETS)


def _revised(push: PushContent, terminal: Terminal) -> PushContent:
    """Return the push with headers for the air, the application first (5.1.2.1.2)."""
    _check_size(push.body, terminal)
    header = _value(push.headers, APPLICATION)
    try:
        application = over_the_air(header, client_default=terminal.default_application)
    except Malformed as error:
        raise NotTransformable(f"the application is not valid: {error}") from None
    kept = [
        pair
        for pair in push.headers
        if (name := pair[0].lower()) not in WIRED and name not in (APPLICATION, "content-type")
    ]
    if application is not None:
        number = str(application) if isinstance(application, int) else name_of(application)
        kept.insert(0, ("X-Wap-Application-Id", number))
    return PushContent(push.content_type, tuple(kept), push.body)


def _check_size(body: bytes, terminal: Terminal) -> None:
    if terminal.max_size is not None and len(body) > terminal.max_size:
        raise NotTransformable(
            "the push is larger than the client accepts", size=len(body), limit=terminal.max_size
        )


def _value(headers: Headers, name: str) -> str | None:
    for found, value in headers:
        if found.lower() == name:
            return value
    return None
