"""The tables of streams and of bodies that come in pieces, in memory and in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING

from lasthop.store.streams import PieceRow, StreamChanges, StreamRow, StreamsRestored
from lasthop.store.tables.base import (
    THESE,
    MemoryTable,
    SqliteTable,
    StoreInMemory,
    as_json,
    joined,
    packed,
)

if TYPE_CHECKING:
    from lasthop.store.sqlite.reader import SqliteReader


class StreamsInMemory(MemoryTable[StreamChanges]):
    """The rows of streams and their pieces in memory."""

    def __init__(self) -> None:
        self._rows: dict[int, StreamRow] = {}
        self._pieces: dict[int, dict[int, PieceRow]] = {}

    def write(self, changes: StreamChanges) -> None:
        for piece in changes.pieces:
            self._pieces.setdefault(piece.stream, {})[piece.offset] = piece
        for key, below in changes.handed_on.items():
            kept = self._pieces.get(key, {})
            for offset in [offset for offset in kept if offset < below]:
                del kept[offset]
        for row in changes.rows.values():
            self._rows[row.key] = row
            if not row.open:
                self._pieces.pop(row.key, None)

    def read(self, spine: StoreInMemory) -> StreamsRestored:
        return StreamsRestored(
            rows=[copy(row) for _, row in sorted(self._rows.items()) if row.open],
            pieces=[
                copy(piece)
                for _, pieces in sorted(self._pieces.items())
                for _, piece in sorted(pieces.items())
            ],
        )

    def find(self, keys: Iterable[int]) -> dict[int, StreamRow]:
        return {key: copy(self._rows[key]) for key in keys if key in self._rows}

    def retire(self, before: int) -> None:
        for key in [key for key, row in self._rows.items() if key < before and not row.open]:
            del self._rows[key]


SCHEMA = (
    "CREATE TABLE stream (key INTEGER PRIMARY KEY, open INTEGER NOT NULL, record BLOB NOT NULL)",
    "CREATE INDEX open_stream ON stream (key) WHERE open",
    """CREATE TABLE piece (
        stream INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (stream, offset))""",
)


class StreamsInSqlite(SqliteTable[StreamChanges]):
    """The rows of streams and their pieces in SQLite."""

    columns = ("streams", "records", "pieces", "piece_bodies", "handed_on")
    # `substr` of an empty value is NULL, hence `ifnull`. CROSS JOIN keeps the order: piece is
    # large.
    apply = """
        INSERT OR REPLACE INTO piece (stream, offset, body)
            SELECT value ->> '$[0]', value ->> '$[1]',
                ifnull(substr(NEW.piece_bodies, value ->> '$[2]', value ->> '$[3]'), x'')
            FROM json_each(NEW.pieces);
        DELETE FROM piece WHERE rowid IN
            (SELECT piece.rowid FROM json_each(NEW.handed_on) AS below CROSS JOIN piece
            ON stream = below.value ->> '$[0]' AND offset < below.value ->> '$[1]');
        INSERT OR REPLACE INTO stream (key, open, record)
            SELECT value ->> '$[0]', value ->> '$[1]',
                ifnull(substr(NEW.records, value ->> '$[2]', value ->> '$[3]'), x'')
            FROM json_each(NEW.streams);
        DELETE FROM piece WHERE stream IN
            (SELECT value ->> '$[0]' FROM json_each(NEW.streams) WHERE NOT value ->> '$[1]');"""

    def values(self, run: Sequence[StreamChanges]) -> tuple[str | bytes, ...]:
        rows = [row for changes in run for row in changes.rows.values()]
        pieces = [piece for changes in run for piece in changes.pieces]
        return (
            *packed(((row.key, row.open), row.record) for row in rows),
            *packed(((piece.stream, piece.offset), piece.body) for piece in pieces),
            joined(changes.handed_on.items() for changes in run),
        )

    def read(self, connection: sqlite3.Connection, reader: SqliteReader) -> StreamsRestored:
        rows = connection.execute("SELECT key, open, record FROM stream WHERE open ORDER BY key")
        pieces = connection.execute(
            "SELECT stream, offset, body FROM piece ORDER BY stream, offset"
        )
        return StreamsRestored(
            rows=[_stream(*row) for row in rows], pieces=(PieceRow(*row) for row in pieces)
        )

    def find(self, connection: sqlite3.Connection, keys: Iterable[int]) -> dict[int, StreamRow]:
        sql = f"SELECT key, open, record FROM stream WHERE key IN {THESE}"
        return {row[0]: _stream(*row) for row in connection.execute(sql, (as_json(keys),))}

    def retire(self, connection: sqlite3.Connection, before: int) -> None:
        connection.execute("DELETE FROM stream WHERE NOT open AND key < ?", (before,))


def _stream(key: int, is_open: int, record: bytes) -> StreamRow:
    return StreamRow(key, bool(is_open), record)
