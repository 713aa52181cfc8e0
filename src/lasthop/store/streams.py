"""The rows of streams, and of bodies that come in pieces. A commit of plain traffic has no such
rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class StreamRow(msgspec.Struct, array_like=True):
    """A stream, or a body that is arriving in pieces; `record` is opaque to the store."""

    key: int
    open: bool
    """Whether the stream is open. The pieces of a finished stream are removed; the row stays as
    long as the message that opened it."""
    record: bytes


class PieceRow(msgspec.Struct, array_like=True, gc=False):
    """A piece that was received and not yet handed on."""

    stream: int
    offset: int
    body: bytes


class StreamChanges(msgspec.Struct):
    """The stream changes of one commit. If two rows have the same key, the later one is stored."""

    rows: dict[int, StreamRow] = {}
    pieces: list[PieceRow] = []
    handed_on: dict[int, int] = {}
    """For each stream, the offset below which pieces are removed, by where they begin. Applied
    after `pieces`."""


class StreamsRestored(msgspec.Struct, frozen=True):
    """The rows of streams when a store is opened."""

    rows: Iterable[StreamRow] = ()
    """The streams that are open, in ascending order of key."""
    pieces: Iterable[PieceRow] = ()
    """The pieces of the open streams, by stream and offset; may be read once."""
