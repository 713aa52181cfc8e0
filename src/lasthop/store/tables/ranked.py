"""The tables of ranked topics, in memory and in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING

from lasthop.message import Message
from lasthop.store.ranked import FeedRow, KeptRow, RankedChanges, RankedRestored, TopicRow
from lasthop.store.tables.base import (
    THESE,
    MemoryTable,
    SqliteTable,
    StoreInMemory,
    as_json,
    joined,
)

if TYPE_CHECKING:
    from lasthop.store.sqlite.reader import SqliteReader


class RankedInMemory(MemoryTable[RankedChanges]):
    """The rows of ranked topics in memory."""

    def __init__(self) -> None:
        self.kept = RankedChanges()

    def write(self, changes: RankedChanges) -> None:
        kept = self.kept
        kept.feeds.update(changes.feeds)
        for feed in changes.feeds.values():
            if not feed.record:
                for part in (0, 1):
                    kept.feeds.pop((feed.device, feed.topic, part), None)
        kept.kept.update(changes.kept)
        for at, row in changes.kept.items():
            if not row.place:
                del kept.kept[at]
        kept.ranks.update(changes.ranks)
        kept.topics.update(changes.topics)

    def read(self, spine: StoreInMemory) -> RankedRestored:
        return RankedRestored(
            feeds=[copy(row) for _, row in sorted(self.kept.feeds.items())],
            kept=[copy(row) for _, row in sorted(self.kept.kept.items())],
            topics=[copy(row) for _, row in sorted(self.kept.topics.items())],
        )

    def amend(self, messages: Mapping[int, Message]) -> None:
        for key in messages.keys() & self.kept.ranks.keys():
            messages[key].rank = self.kept.ranks[key]

    def forget(self, messages: Collection[int]) -> None:
        for key in messages:
            self.kept.ranks.pop(key, None)


SCHEMA = (
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


class RankedInSqlite(SqliteTable[RankedChanges]):
    """The rows of ranked topics in SQLite."""

    columns = ("feeds", "kept", "ranks", "topics")
    apply = """
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
            ON CONFLICT DO UPDATE SET row = excluded.row;"""

    def values(self, run: Sequence[RankedChanges]) -> tuple[str, ...]:
        return (
            joined(changes.feeds.values() for changes in run),
            joined(changes.kept.values() for changes in run),
            joined(changes.ranks.items() for changes in run),
            joined(changes.topics.values() for changes in run),
        )

    def read(self, connection: sqlite3.Connection, reader: SqliteReader) -> RankedRestored:
        return RankedRestored(
            feeds=reader.rows("feed", FeedRow, "device, topic, part"),
            kept=reader.rows("kept", KeptRow, "message, device"),
            topics=reader.rows("topic", TopicRow, "app, topic"),
        )

    def amend(self, connection: sqlite3.Connection, messages: Mapping[int, Message]) -> None:
        sql = f"SELECT message, rank FROM rank WHERE message IN {THESE}"
        for key, rank in connection.execute(sql, (as_json(messages),)):
            messages[key].rank = rank

    def forget(self, connection: sqlite3.Connection, messages: str) -> None:
        connection.execute(f"DELETE FROM rank WHERE message IN {THESE}", (messages,))
