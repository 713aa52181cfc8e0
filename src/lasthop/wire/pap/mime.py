"""MIME headers as far as PAP's entities need them: lines as pairs, and parameters of a media
type."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from lasthop.errors import PapMalformed, TooLarge

MAX_HEADER_BLOCK = 16 * 1024
"""The largest number of octets in one entity's headers. HTTP servers stop at 8 to 64 KiB, and all
headers go over the air to a device in the end."""

MAX_HEADERS = 64
"""The largest number of lines of one entity's headers; a push has a dozen."""

MAX_PARAMETERS = 16
"""The largest number of parameters of one media type; multipart/related has five."""

Headers = tuple[tuple[str, str], ...]

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_TYPE = re.compile(r"[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+/[!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*")
_PARAMETER = re.compile(
    r""";[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*=[ \t]*
    (?:"((?:[^"\\]|\\.)*+)"|([^\x00-\x1f;"]*+))[ \t]*""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"[; \t]*")


class MediaType(NamedTuple):
    """A media type such as `multipart/related; boundary=x`: the type in lower case and its
    parameters."""

    essence: str
    parameters: dict[str, str]


MAX_REMEMBERED = 200
"""The largest number of characters in a text whose parsed form is cached. Nearly all media types,
addresses and headers of an entity are shorter, and recur."""


def parse_media_type(text: str) -> MediaType:
    """Parse a Content-Type, with or without quotes, with blanks around signs and stray semicolons;
    raise PapMalformed or TooLarge. The result may be shared and must not be changed."""
    return _remembered(text) if len(text) <= MAX_REMEMBERED else _parse_media_type(text)


@lru_cache(maxsize=1024)
def _remembered(text: str) -> MediaType:
    return _parse_media_type(text)


def _parse_media_type(text: str) -> MediaType:
    found = _TYPE.match(text)
    if found is None:
        raise PapMalformed("not a media type", content_type=text[:80])
    parameters: dict[str, str] = {}
    at = found.end()
    while at < len(text) and (parameter := _PARAMETER.match(text, at)):
        name, quoted, plain = parameter.groups()
        if quoted is not None:
            plain = re.sub(r"\\(.)", r"\1", quoted) if "\\" in quoted else quoted
        # Of two parameters with one name the first counts, as in browsers.
        parameters.setdefault(name.lower(), plain.rstrip(" \t"))
        if len(parameters) > MAX_PARAMETERS:
            raise TooLarge("a media type has too many parameters", limit=MAX_PARAMETERS)
        at = parameter.end()
    rest = _SPACE.match(text, at)
    if rest is None or rest.end() < len(text):
        raise PapMalformed("not a parameter of a media type", content_type=text[:80])
    return MediaType(found[1].lower(), parameters)


def parse_headers(block: bytes) -> Headers:
    """Parse the lines before an entity's empty line; continued lines are joined. Raise PapMalformed
    or TooLarge.

    Values should be ASCII. Others are read as UTF-8 if possible, else as Latin-1.
    """
    return _remembered_headers(block) if len(block) <= MAX_REMEMBERED else _parse_headers(block)


@lru_cache(maxsize=1024)
def _remembered_headers(block: bytes) -> Headers:
    return _parse_headers(block)


def _parse_headers(block: bytes) -> Headers:
    if len(block) > MAX_HEADER_BLOCK:
        raise TooLarge("the headers of an entity are too large", limit=MAX_HEADER_BLOCK)
    if b"\n " in block or b"\n\t" in block:
        block = _FOLD.sub(b" ", block)
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError:
        text = block.decode("latin-1")
    lines = text.split("\n")
    if len(lines) > MAX_HEADERS:
        raise TooLarge("an entity has too many headers", limit=MAX_HEADERS)
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.rstrip(" \t")
        if not colon or _TOKEN.fullmatch(name) is None:
            raise PapMalformed("not a header", header=line[:80])
        value = value.strip(" \t\r").replace("\t", " ")
        if not value.isprintable():
            raise PapMalformed("a header must not contain control characters", header=name[:80])
        headers.append((name, value))
    return tuple(headers)


def header(headers: Headers, name: str) -> str | None:
    """Return the first value of a header, given its name in lower case; None if there is none."""
    for found, value in headers:
        if found.lower() == name:
            return value
    return None


def format_headers(headers: Headers) -> bytes:
    """Format headers, each with its line end; raise ValueError for what would not be one header."""
    out = []
    for name, value in headers:
        if _TOKEN.fullmatch(name) is None:
            raise ValueError(f"not the name of a header: {name[:80]!r}")
        if not value.isprintable() or value != value.strip(" "):
            raise ValueError(f"not the value of a header: {value[:80]!r}")
        out.append(f"{name}: {value}\r\n")
    return "".join(out).encode()


def quote(text: str) -> str:
    """Put the value of a parameter in quotation marks."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
