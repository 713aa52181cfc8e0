"""What the head of an HTTP request may be, whoever it is for.

The parser has no limits of its own: it would take in headers without end. Framing (two lengths, a
length beside a transfer coding) it refuses by itself.
"""

from __future__ import annotations

import re

from lasthop.errors import InvalidRequest, TooLarge

MAX_HEAD = 32 << 10
"""Bytes of a request's target and headers. The largest that we read has 1 kB; the rest is cookies
of somebody else."""

MAX_TARGET = 16 << 10
"""Bytes of a request's target; RFC 9112, section 3, wants 8000 of any server."""

MAX_FIELDS = 128
"""Header fields of a request: 32 are for a message, browsers and proxies add some twenty. A field
of 4 bytes takes 150 here."""

_HOST = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._~-]+)?\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]*)?"
)
"""RFC 9110, section 7.2; also with the zone that some clients leave in an IPv6 address."""

_WITHOUT_HOST = frozenset({"0.9", "1.0"})


class HeadTooLarge(TooLarge):
    code = "head_too_large"
    http_status = 431


class TargetTooLong(TooLarge):
    code = "target_too_long"
    http_status = 414


def too_large(target: bytes) -> TooLarge:
    """Why a head is refused that does not end, of which the target is this."""
    if len(target) > MAX_TARGET:
        return TargetTooLong("the request target is too long", limit=MAX_TARGET)
    return HeadTooLarge("the headers are too large", limit=MAX_HEAD)


def too_many() -> TooLarge:
    """Why a head with more than `MAX_FIELDS` fields is refused."""
    return HeadTooLarge("the request has too many headers", limit=MAX_FIELDS)


def check_size(target: bytes, fields: list[tuple[bytes, bytes]]) -> None:
    """Refuse a head that is too large."""
    size = len(target) + sum(len(name) + len(value) for name, value in fields)
    if size > MAX_HEAD or len(target) > MAX_TARGET:
        raise too_large(target)


def check_host(host: bytes | None, *, times: int, version: str) -> None:
    """Refuse a request that does not say once, and legibly, whom it is for: RFC 9112, section 3.2.

    Two parties that read different ones would disagree about where a request comes from.
    """
    if times > 1:
        raise InvalidRequest("the request has more than one Host header", field="Host")
    if host is None:
        if version not in _WITHOUT_HOST:
            raise InvalidRequest("a request of HTTP/1.1 needs a Host header", field="Host")
    elif not _HOST.fullmatch(host):
        raise InvalidRequest("the Host header is not a host with an optional port", field="Host")
