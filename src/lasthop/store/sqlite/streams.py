"""Streams in SQLite: a few more statements, for the commits that have some of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from lasthop.store.commit import Commit
from lasthop.store.streams import PieceRow, StreamRow

TABLES = (
    "CREATE TABLE stream (key INTEGER PRIMARY KEY, open INTEGER NOT NULL, record BLOB NOT NULL)",
    "CREATE INDEX open_stream ON stream (key) WHERE open",
    """CREATE TABLE piece (
        stream INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (stream, offset))""",
)


def write_streams(connection: sqlite3.Connection, run: Sequence[Commit]) -> None:
    """Write what these commits change, in the transaction that is open."""
    for commit in run:
        changes = commit.streams
        if changes is None:
            continue
        connection.executemany(
            "INSERT OR REPLACE INTO piece VALUES (?, ?, ?)",
            [(piece.stream, piece.offset, piece.body) for piece in changes.pieces],
        )
        connection.executemany(
            "DELETE FROM piece WHERE stream = ? AND offset < ?", list(changes.handed_on.items())
        )
        connection.executemany(
            "INSERT OR REPLACE INTO stream VALUES (?, ?, ?)",
            [(row.key, row.open, row.record) for row in changes.rows.values()],
        )
        connection.executemany(
            "DELETE FROM piece WHERE stream = ?",
            [(row.key,) for row in changes.rows.values() if not row.open],
        )


def open_streams(connection: sqlite3.Connection) -> list[StreamRow]:
    """Those that are not over."""
    rows = connection.execute("SELECT key, open, record FROM stream WHERE open ORDER BY key")
    return [StreamRow(key, bool(is_open), record) for key, is_open, record in rows]


def open_pieces(connection: sqlite3.Connection) -> Iterator[PieceRow]:
    """What they hold."""
    rows = connection.execute("SELECT stream, offset, body FROM piece ORDER BY stream, offset")
    return (PieceRow(*row) for row in rows)


def find_stream(connection: sqlite3.Connection, key: int) -> StreamRow | None:
    """A stream, also one that is over."""
    row = connection.execute(
        "SELECT key, open, record FROM stream WHERE key = ?", (key,)
    ).fetchone()
    return None if row is None else StreamRow(row[0], bool(row[1]), row[2])


def retire_streams(connection: sqlite3.Connection, *, before: int) -> None:
    """Forget those that are over and were opened before this key."""
    connection.execute("DELETE FROM stream WHERE NOT open AND key < ?", (before,))
