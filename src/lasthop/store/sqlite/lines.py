"""Lines of events as a page of the store keeps them: compressed, or as they are if they are few.

Events repeat each other's words: at zlib's fastest level they take a tenth of the room, and less
time than the disk would. The first byte says whether a page is compressed; pages of stores from
before compression are not.
"""

from __future__ import annotations

import zlib

from lasthop.errors import StoreBroken

FEW = 4096
"""Bytes up to which compression is not worth it: less than a page of the database is saved."""

_FASTEST = 1
_LINE = b"{"
"""The first byte of a line, which no output of zlib begins with."""


def pack(lines: bytes | bytearray) -> bytes:
    """Return lines in the form in which a page keeps them, compressed if there are many."""
    return zlib.compress(lines, _FASTEST) if len(lines) > FEW else bytes(lines)


def unpack(kept: bytes) -> bytes:
    """Return the lines of a page; raise StoreBroken if the page is damaged."""
    if kept.startswith(_LINE):
        return kept
    try:
        return zlib.decompress(kept)
    except zlib.error as error:
        raise StoreBroken("a page of events is damaged", cause=str(error)) from None
