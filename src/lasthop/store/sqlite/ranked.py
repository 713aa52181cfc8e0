"""Ranked topics in SQLite: a second statement, for the commits that have some of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

import msgspec

from lasthop.message import Message
from lasthop.store.commit import Commit
from lasthop.store.ranked import RankedChanges

_json = msgspec.json.Encoder()

SETUP = (
    """CREATE TEMP VIEW incoming_ranked AS
        SELECT '' AS feeds, '' AS kept, '' AS ranks, '' AS topics""",
    """CREATE TEMP TRIGGER apply_ranked INSTEAD OF INSERT ON incoming_ranked BEGIN
        INSERT INTO feed (device, topic, part, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value
            FROM json_each(NEW.feeds) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        DELETE FROM feed WHERE (device, topic) IN
            (SELECT value ->> '$[0]', value ->> '$[1]' FROM json_each(NEW.feeds)
            WHERE value ->> '$[3]' = '');
        INSERT INTO kept (message, device, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value
            FROM json_each(NEW.kept) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        DELETE FROM kept WHERE (message, device) IN
            (SELECT value ->> '$[0]', value ->> '$[1]' FROM json_each(NEW.kept)
            WHERE value ->> '$[3]' = 0);
        INSERT INTO rank (message, rank)
            SELECT value ->> '$[0]', value ->> '$[1]' FROM json_each(NEW.ranks) WHERE true
            ON CONFLICT DO UPDATE SET rank = excluded.rank;
        INSERT INTO topic (app, topic, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value FROM json_each(NEW.topics) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
    END""",
)

TABLES = (
    """CREATE TABLE feed (
        device INTEGER NOT NULL,
        topic TEXT NOT NULL,
        part INTEGER NOT NULL,
        row TEXT NOT NULL,
        PRIMARY KEY (device, topic, part)) WITHOUT ROWID""",
    """CREATE TABLE kept (
        message INTEGER NOT NULL,
        device INTEGER NOT NULL,
        row TEXT NOT NULL,
        PRIMARY KEY (message, device)) WITHOUT ROWID""",
    "CREATE TABLE rank (message INTEGER PRIMARY KEY, rank REAL NOT NULL)",
    """CREATE TABLE topic (
        app TEXT NOT NULL,
        topic TEXT NOT NULL,
        row TEXT NOT NULL,
        PRIMARY KEY (app, topic)) WITHOUT ROWID""",
)


def write_ranked(connection: sqlite3.Connection, run: Sequence[Commit]) -> None:
    """Write what these commits change, in the transaction that is open."""
    for commit in run:
        if commit.ranked is not None:
            connection.execute(
                "INSERT INTO incoming_ranked VALUES (?, ?, ?, ?)", _values(commit.ranked)
            )


def _values(changes: RankedChanges) -> tuple[str, ...]:
    parts: tuple[Collection[object], ...] = (
        changes.feeds.values(),
        changes.kept.values(),
        changes.ranks.items(),
        changes.topics.values(),
    )
    return tuple(_json.encode(list(part)).decode() for part in parts)


def rerank(connection: sqlite3.Connection, messages: dict[int, Message]) -> None:
    """Give messages the rank that they have by now."""
    rows = connection.execute(
        "SELECT message, rank FROM rank WHERE message IN (SELECT value FROM json_each(?))",
        (_json.encode(list(messages)).decode(),),
    )
    for key, rank in rows:
        messages[key].rank = rank
