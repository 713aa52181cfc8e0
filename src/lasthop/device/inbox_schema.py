"""The tables of an inbox in SQLite, and how those of earlier versions are brought up to date."""

from __future__ import annotations

import sqlite3

from lasthop.device.change import SessionNumbers
from lasthop.device.packing import pack_state
from lasthop.errors import StoreBroken

VERSION = 5

_SCHEMA = """
CREATE TABLE lasthop_session (
    one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, state BLOB NOT NULL
);
CREATE TABLE lasthop_inbox (
    position INTEGER PRIMARY KEY, number INTEGER, default_type TEXT, frame BLOB NOT NULL
);
CREATE TABLE lasthop_outbox (
    key INTEGER PRIMARY KEY, number INTEGER NOT NULL, frame BLOB NOT NULL
);
CREATE TABLE lasthop_keys (
    id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, keys BLOB NOT NULL
);
CREATE TABLE lasthop_notes (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""

_SECOND = """
CREATE TABLE lasthop_kept (
    place INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, rank REAL NOT NULL,
    default_type TEXT NOT NULL, frame BLOB NOT NULL
);
CREATE TABLE lasthop_feed (topic TEXT PRIMARY KEY, most INTEGER) WITHOUT ROWID;
"""
"""The tables that version 2 added: ranked topics."""

_THIRD = """
CREATE TABLE lasthop_request (
    key INTEGER PRIMARY KEY, deadline INTEGER NOT NULL, callback TEXT NOT NULL,
    target TEXT NOT NULL, lane TEXT NOT NULL
);
"""
"""The table that version 3 added: requests whose answers outlive the process."""

_FOURTH = """
CREATE TABLE lasthop_flow (
    key INTEGER NOT NULL, incoming INTEGER NOT NULL, state BLOB NOT NULL,
    PRIMARY KEY (key, incoming)
) WITHOUT ROWID;
CREATE TABLE lasthop_piece (
    key INTEGER NOT NULL, incoming INTEGER NOT NULL, "offset" INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (key, incoming, "offset")
);
"""
"""The tables that version 4 added: streams, and bodies in pieces."""

_FIFTH = """
CREATE TABLE lasthop_lane (
    incoming INTEGER NOT NULL, id INTEGER NOT NULL, state BLOB NOT NULL,
    PRIMARY KEY (incoming, id)
) WITHOUT ROWID;
ALTER TABLE lasthop_inbox RENAME TO lasthop_inbox_4;
CREATE TABLE lasthop_inbox (
    lane INTEGER NOT NULL, position INTEGER NOT NULL, numbered_in INTEGER NOT NULL, number INTEGER,
    default_type TEXT, frame BLOB NOT NULL,
    PRIMARY KEY (lane, position)
) WITHOUT ROWID;
INSERT INTO lasthop_inbox
    SELECT 0, position, 0, number, default_type, frame FROM lasthop_inbox_4 ORDER BY position;
DROP TABLE lasthop_inbox_4;
ALTER TABLE lasthop_outbox ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;
"""
"""The changes of version 5: lanes. Everything that was there before is in lane 0."""


def prepare(database: sqlite3.Connection) -> None:
    """Create or upgrade the tables; refuse those of a newer version."""
    exists = database.execute(
        "SELECT 1 FROM sqlite_schema WHERE name = 'lasthop_session'"
    ).fetchone()
    if exists is None:
        database.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}{_SECOND}{_THIRD}{_FOURTH}{_FIFTH}")
        database.execute(
            "INSERT INTO lasthop_session VALUES (1, ?, ?)", (VERSION, pack_state(SessionNumbers()))
        )
        database.execute("COMMIT")
    ((version,),) = database.execute("SELECT version FROM lasthop_session").fetchall()
    if version > VERSION:
        raise StoreBroken("the inbox was written by a newer version", version=version)
    if version < VERSION:
        steps = (_SECOND, _THIRD, _FOURTH, _FIFTH)[version - 1 :]
        database.executescript(f"BEGIN IMMEDIATE;{''.join(steps)}")
        database.execute("UPDATE lasthop_session SET version = ?", (VERSION,))
        database.execute("COMMIT")
