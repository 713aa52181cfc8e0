"""multipart/related, in which PAP packs a control entity with the entities that belong to it.

Read as initiators really send it: any line ends, text before the first and after the last boundary,
quoted boundaries, a missing `start`, any transfer encoding. Written as RFC 2046 and 2387 prescribe.
"""

from __future__ import annotations

import binascii
import re
from hashlib import blake2b

import msgspec

from lasthop.errors import PapMalformed, TooLarge
from lasthop.wire.pap.mime import (
    MAX_HEADER_BLOCK,
    Headers,
    MediaType,
    format_headers,
    header,
    parse_headers,
    parse_media_type,
    quote,
)

MAX_PARTS = 8
"""The largest number of entities that are read. PAP packs two or three; a few more are read, so
that the error can say what is wrong with them."""

MAX_BODY = 8 * 1024 * 1024
"""The largest number of octets in a whole submission, unless the caller has another limit: many
times what any device of this kind accepts in one message."""

MAX_BOUNDARY = 200
"""The largest number of characters in a boundary: RFC 2046 says 70, and some libraries make longer
ones."""

MAX_PADDING = 80
"""The largest number of blanks after a boundary, which some mail gateways add. A line with more is
content."""

MAX_LOOKALIKES = 1000
"""The largest number of lines that begin like the boundary and are not a boundary. An ordinary
entity has a handful, those of an inner multipart; checking each takes time."""

_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]")
_UNENCODED = frozenset({"", "7bit", "8bit", "binary", "identity"})


class Entity(msgspec.Struct, frozen=True, gc=False):
    """A MIME entity: its headers and its body without transfer encoding."""

    headers: Headers
    body: bytes

    @property
    def content_type(self) -> str | None:
        return header(self.headers, "content-type")


def read_related(content_type: str, body: bytes, *, limit: int = MAX_BODY) -> tuple[Entity, ...]:
    """Return the entities of a multipart/related body, the root (RFC 2387) first; raise
    PapMalformed or TooLarge."""
    return unpack(parse_media_type(content_type), body, limit=limit)


def unpack(media: MediaType, body: bytes, *, limit: int = MAX_BODY) -> tuple[Entity, ...]:
    """Return the entities as `read_related` does, for a media type that was parsed already."""
    if media.essence != "multipart/related":
        raise PapMalformed("not multipart/related", content_type=media.essence[:80])
    if len(body) > limit:
        raise TooLarge("a submission is too large", limit=limit)
    entities = [read_entity(part) for part in split(body, boundary_of(media))]
    start = media.parameters.get("start")
    if start:
        for index, entity in enumerate(entities):
            if header(entity.headers, "content-id") == start:
                entities.insert(0, entities.pop(index))
                break
    return tuple(entities)


def boundary_of(media: MediaType) -> bytes:
    boundary = media.parameters.get("boundary", "")
    if not boundary:
        raise PapMalformed("a multipart body has no boundary")
    if len(boundary) > MAX_BOUNDARY:
        raise TooLarge("a boundary is too long", limit=MAX_BOUNDARY)
    return boundary.encode("utf-8", "replace")


def split(body: bytes, boundary: bytes) -> list[bytes]:
    """Cut a body at its boundary; raise PapMalformed if the last one is missing, or TooLarge.

    A delimiter is a line of its own (RFC 2046, 5.1.1), with blanks after it allowed. The line end
    before it belongs to it.
    """
    mark = b"--" + boundary
    parts: list[bytes] = []
    start = -1
    lookalikes = 0
    at = 0 if body.startswith(mark) else _next(body, mark, 0)
    while at >= 0:
        rest = at + len(mark)
        closing = body[rest : rest + 2] == b"--"
        rest += 2 * closing
        end = body.find(b"\n", rest)
        line_end = end if end >= 0 else len(body)
        blank = line_end - rest <= MAX_PADDING and not body[rest:line_end].strip(b" \t\r")
        if not blank or (end < 0 and not closing):
            lookalikes += 1
            if lookalikes > MAX_LOOKALIKES:
                raise TooLarge("too many lines begin like the boundary", limit=MAX_LOOKALIKES)
            at = _next(body, mark, rest)
            continue
        if start >= 0:
            parts.append(body[start : _content_end(body, start, at)])
        if closing:
            break
        if len(parts) >= MAX_PARTS:
            raise TooLarge("a submission has too many entities", limit=MAX_PARTS)
        start = end + 1
        # The line end that was just read can also be the one before the next delimiter.
        at = _next(body, mark, end)
    if at < 0:
        raise PapMalformed("a multipart body does not end with its boundary")
    if not parts:
        raise PapMalformed("a multipart body has nothing in it")
    return parts


def _next(body: bytes, mark: bytes, start: int) -> int:
    """Return where the next line that begins with the mark begins, or -1."""
    found = body.find(b"\n" + mark, start)
    return found + 1 if found >= 0 else -1


def _content_end(body: bytes, start: int, at: int) -> int:
    """Return where the content ends whose delimiter begins at `at`."""
    end = at - 1
    if end > start and body[end - 1 : end] == b"\r":
        end -= 1
    return max(start, end)


def read_entity(part: bytes) -> Entity:
    """Parse an entity: headers, an empty line, a body; raise PapMalformed or TooLarge."""
    if part.startswith((b"\r\n", b"\n")):
        return Entity((), part[part.index(b"\n") + 1 :])
    strict = part.find(b"\r\n\r\n", 0, MAX_HEADER_BLOCK + 4)
    loose = part.find(b"\n\n", 0, strict if strict >= 0 else MAX_HEADER_BLOCK + 4)
    if loose >= 0:
        block, body = part[:loose], part[loose + 2 :]
    elif strict >= 0:
        block, body = part[:strict], part[strict + 4 :]
    elif len(part) > MAX_HEADER_BLOCK:
        raise TooLarge("the headers of an entity are too large", limit=MAX_HEADER_BLOCK)
    else:
        # Headers alone, or headers and their line end: an empty body.
        block, body = part.removesuffix(b"\n").removesuffix(b"\r"), b""
    headers = parse_headers(block) if block else ()
    encoding = header(headers, "content-transfer-encoding")
    if encoding is not None:
        body = _decode(body, encoding)
        headers = tuple(pair for pair in headers if pair[0].lower() != "content-transfer-encoding")
    return Entity(headers, body)


def _decode(body: bytes, encoding: str) -> bytes:
    name = encoding.strip().lower()
    if name in _UNENCODED:
        return body
    if name == "quoted-printable":
        return binascii.a2b_qp(body)
    if name == "base64":
        try:
            return binascii.a2b_base64(body.translate(None, b" \t\r\n"), strict_mode=True)
        except binascii.Error:
            raise PapMalformed("an entity is not base64") from None
    raise PapMalformed("the transfer encoding is not supported", encoding=name[:40])


def write_related(
    entities: tuple[Entity, ...], *, boundary: str | None = None
) -> tuple[str, bytes]:
    """Pack entities, the root first; return the Content-Type and the body. Raise ValueError.

    The root's own type becomes the `type` parameter that RFC 2387 requires. Without a boundary one
    is made from the content, so that the same entities give the same octets.
    """
    if not entities:
        raise ValueError("there is nothing to pack")
    chosen = make_boundary(entities) if boundary is None else boundary
    if _BOUNDARY.fullmatch(chosen) is None:
        raise ValueError("not a boundary")
    mark = b"--" + chosen.encode("ascii")
    out = []
    for entity in entities:
        head = format_headers(entity.headers)
        if mark in entity.body or mark in head:
            raise ValueError("the boundary occurs in an entity")
        out += [mark, b"\r\n", head, b"\r\n", entity.body, b"\r\n"]
    out += [mark, b"--\r\n"]
    root = entities[0].content_type
    kind = parse_media_type(root).essence if root else "application/octet-stream"
    return (
        f"multipart/related; boundary={quote(chosen)}; type={quote(kind)}",
        b"".join(out),
    )


def make_boundary(entities: tuple[Entity, ...]) -> str:
    """Return a boundary that does not occur in these entities."""
    digest = blake2b(digest_size=12)
    for entity in entities:
        digest.update(entity.body)
    while True:
        boundary = f"lasthop-{digest.hexdigest()}"
        mark = b"--" + boundary.encode("ascii")
        if not any(mark in e.body or mark in format_headers(e.headers) for e in entities):
            return boundary
        digest.update(b"again")
