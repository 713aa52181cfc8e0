"""Lines of events as a page of the store keeps them: packed, or a few as they are.

Events repeat each other's words: at zlib's fastest level they take a tenth of the room, and less
time than the disk would. The first byte tells which way a page is kept; stores from before there
was any packing have theirs as they are.
"""

from __future__ import annotations

import zlib

from lasthop.errors import StoreBroken

FEW = 4096
"""Bytes up to which it is not worth it: less than a page of the database is saved."""

_FASTEST = 1
_LINE = b"{"
"""What a line begins with, and nothing that zlib makes does."""


def pack(lines: bytes | bytearray) -> bytes:
    """Lines as they are kept."""
    return zlib.compress(lines, _FASTEST) if len(lines) > FEW else bytes(lines)


def unpack(kept: bytes) -> bytes:
    """Lines as they were."""
    if kept.startswith(_LINE):
        return kept
    try:
        return zlib.decompress(kept)
    except zlib.error as error:
        raise StoreBroken("a page of events is damaged", cause=str(error)) from None
