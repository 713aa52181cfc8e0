"""Counts what the octets of a connection are for, from a recorded stream of the hop protocol.

The product's own decoder turns octets into frames and does not keep their sizes, which are all that
matters here. The layout of frames is that of docs/hop-protocol.md, mapped to a stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from lasthop.wire.hop import checksums, layout
from lasthop.wire.hop.frames import HEADER_TAGS
from lasthop.wire.varint import read_varint

BODY: Final = "body"
FRAME: Final = "frame"
"""The part of a message's frame that is neither headers nor body: length, type, number, key and
topic, and the length of the headers."""
CONTROL: Final = "control"
"""Frames that are no messages, nearly all of them acknowledgements; and checksums of writes."""

EXTRA: Final = "extra"
_HEADERS: Final = {tag: name for tag, name, _ in HEADER_TAGS}


def dissect(stream: bytes, since: int = 0) -> Counter[str]:
    """Count the octets of the frames that begin at `since` or later, by what the octets are for.

    Headers are counted by the name that the specification gives them; headers that an application
    adds are counted as `extra NAME`.
    """
    found: Counter[str] = Counter()
    for start, payload, end in _frames(stream):
        if start >= since:
            found.update(_parts(stream, start, payload, end))
    return found


def _frames(stream: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield where each frame begins, where its type byte is, and where it ends. The checksum of a
    write comes as a frame of type 0."""
    at = 0
    while at < len(stream):
        length, payload = read_varint(stream, at)
        if length == checksums.MARK:
            yield at, at, at + checksums.TRAILER
            at += checksums.TRAILER
            continue
        if payload + length > len(stream):
            raise ValueError("the stream ends inside a frame")
        yield at, payload, payload + length
        at = payload + length


def _parts(data: bytes, start: int, at: int, end: int) -> Counter[str]:
    kind = data[at]
    if kind < layout.MESSAGE:
        return Counter({CONTROL: end - start})
    parts: Counter[str] = Counter()
    at += 1
    if kind & layout.NUMBERED:
        _, at = read_varint(data, at)
    if kind & layout.KEY_BITS in (layout.KEY_FORWARD, layout.KEY_ABSOLUTE):
        _, at = read_varint(data, at)
    if kind & layout.TOPIC:
        token, at = read_varint(data, at)
        if not token:
            length, at = read_varint(data, at)
            at += length
    headers = 0
    if kind & layout.HEADERS:
        headers, at = read_varint(data, at)
        parts.update(_headers(data[at : at + headers]))
    body = end - at - headers
    parts[BODY] = body
    parts[FRAME] = end - start - headers - body
    return parts


def _headers(data: bytes) -> Counter[str]:
    parts: Counter[str] = Counter()
    at = 0
    while at < len(data):
        start, name = at, _HEADERS.get(data[at], "unknown")
        length, at = read_varint(data, at + 1)
        if name == EXTRA:
            pairs = _pairs(data[at : at + length])
            parts.update(pairs)
            parts[EXTRA] += at + length - start - pairs.total()
        else:
            parts[name] += at + length - start
        at += length
    return parts


def _pairs(data: bytes) -> Counter[str]:
    """Count the octets of pairs of names and values, each with its length before it."""
    parts: Counter[str] = Counter()
    at = 0
    while at < len(data):
        start = at
        length, at = read_varint(data, at)
        name = data[at : at + length].decode()
        length, at = read_varint(data, at + length)
        at += length
        parts[f"{EXTRA} {name}"] += at - start
    return parts
