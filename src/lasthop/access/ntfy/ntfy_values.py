"""Values of ntfy's parameters that publishing and receiving share."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Mapping
from urllib.parse import urlsplit

from lasthop.access.ntfy.ntfy_errors import NtfyError
from lasthop.access.ntfy.ntfy_parameters import NtfyParameters
from lasthop.errors import Unauthorized
from lasthop.message import DEFAULT_CONTENT_TYPE

_WORDS = {"min": 1, "low": 2, "default": 3, "high": 4, "max": 5, "urgent": 5}
_NUMBERS = {str(number): number for number in range(1, 6)}
_RFC_9218 = re.compile(r"(u=\d|i)(\s*,\s*(u=\d|i))*")


def parse_priority(text: str) -> int:
    """Return a priority from 1 to 5, given by number or name."""
    number = _NUMBERS.get(text) or _WORDS.get(text.lower())
    if number is None:
        raise NtfyError(
            40007,
            "the priority is 1 to 5, or min, low, default, high, max or urgent",
            field="priority",
            value=text[:50],
        )
    return number


def priority_in(parameters: NtfyParameters) -> int:
    """Return the priority of a request; 0 if it has none. A header of RFC 9218 is not one."""
    for text in parameters.all("priority"):
        if not _RFC_9218.fullmatch(text.lower()):
            return parse_priority(text)
    return 0


def split_tags(text: str) -> list[str]:
    """Return the tags between commas, without empty ones."""
    return [tag for tag in (each.strip() for each in text.split(",")) if tag]


def authorized(headers: Mapping[bytes, bytes], parameters: NtfyParameters) -> dict[bytes, bytes]:
    """Return the headers with what the query has in the place of Authorization: for browsers, which
    cannot send it with a WebSocket."""
    given = parameters.query.get("authorization") or parameters.query.get("auth")
    if not given:
        return dict(headers)
    try:
        value = urlsafe_b64decode(given.encode() + b"=" * (-len(given) % 4))
    except (Error, ValueError):
        raise Unauthorized("the parameter auth cannot be read") from None
    return {**headers, b"authorization": value}


def is_place(url: str) -> bool:
    """Return whether a text is a URL of the web, with a host."""
    try:
        place = urlsplit(url)
    except ValueError:
        return False
    return place.scheme in ("http", "https") and bool(place.netloc)


_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)


def file_type_of(body: bytes) -> str:
    """Return the content type that the first bytes of a file speak for."""
    for start, kind in _MAGIC:
        if body.startswith(start):
            return kind
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        return "image/webp"
    try:
        body.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return DEFAULT_CONTENT_TYPE
