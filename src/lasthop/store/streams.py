"""What a store keeps of streams, and of bodies that come in pieces. Commits of plain traffic have
none of it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class StreamRow(msgspec.Struct, array_like=True):
    """A stream, or a body that is coming in; `record` is opaque to the store."""

    key: int
    open: bool
    """When it is over, its pieces go. The row stays as long as the message that opened it."""
    record: bytes


class PieceRow(msgspec.Struct, array_like=True, gc=False):
    """Some bytes that were taken and not handed on."""

    stream: int
    offset: int
    body: bytes


class StreamChanges(msgspec.Struct):
    """What one commit changes. Of two rows for the same key the later one counts."""

    rows: dict[int, StreamRow] = {}
    pieces: list[PieceRow] = []
    handed_on: dict[int, int] = {}
    """By stream: pieces that begin below this offset go. Applied after `pieces`."""


class StreamsRestored(msgspec.Struct, frozen=True):
    """What there is when a store is opened."""

    rows: Iterable[StreamRow] = ()
    """Those that are open, by key."""
    pieces: Iterable[PieceRow] = ()
    """Theirs, by stream and offset; may be read once."""
