"""The limits on the head of an HTTP request, for every door.

The parser has no limits of its own: it would accept headers without end. The parser itself refuses
requests with wrong framing (two lengths, or a length beside a transfer coding).
"""

from __future__ import annotations

import re

from lasthop.errors import InvalidRequest, TooLarge

MAX_HEAD = 32 << 10
"""The largest number of bytes in a request's target and headers. The gateway itself uses at most 1
kB of headers; the rest are other applications' cookies."""

MAX_TARGET = 16 << 10
"""The largest number of bytes in a request's target; RFC 9112, section 3, asks every server to
accept 8000."""

MAX_FIELDS = 128
"""The largest number of header fields in a request: a message may have 32, and browsers and proxies
add some twenty. A field of 4 bytes takes 150 bytes of memory."""

_HOST = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._~-]+)?\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]*)?"
)
"""A Host header (RFC 9110, section 7.2); also with the zone that some clients leave in an IPv6
address."""

_WITHOUT_HOST = frozenset({"0.9", "1.0"})


class HeadTooLarge(TooLarge):
    code = "head_too_large"
    http_status = 431


class TargetTooLong(TooLarge):
    code = "target_too_long"
    http_status = 414


def too_large(target: bytes) -> TooLarge:
    """Return the error for a head that is too large and has this target."""
    if len(target) > MAX_TARGET:
        return TargetTooLong("the request target is too long", limit=MAX_TARGET)
    return HeadTooLarge("the headers are too large", limit=MAX_HEAD)


def too_many() -> TooLarge:
    """Return the error for a head with more than `MAX_FIELDS` fields."""
    return HeadTooLarge("the request has too many headers", limit=MAX_FIELDS)


def check_size(target: bytes, fields: list[tuple[bytes, bytes]]) -> None:
    """Raise an error for a head that is too large."""
    size = len(target) + sum(len(name) + len(value) for name, value in fields)
    if size > MAX_HEAD or len(target) > MAX_TARGET:
        raise too_large(target)


def is_host(text: bytes) -> bool:
    """Whether a text is a host with an optional port, as in a Host header."""
    return _HOST.fullmatch(text) is not None


def check_host(host: bytes | None, *, times: int, version: str) -> None:
    """Raise an error for a request without exactly one well-formed Host header (RFC 9112, section
    3.2).

    Two servers that read different Host headers would disagree about the origin of a request.
    """
    if times > 1:
        raise InvalidRequest("the request has more than one Host header", field="Host")
    if host is None:
        if version not in _WITHOUT_HOST:
            raise InvalidRequest("a request of HTTP/1.1 needs a Host header", field="Host")
    elif not is_host(host):
        raise InvalidRequest("the Host header is not a host with an optional port", field="Host")
