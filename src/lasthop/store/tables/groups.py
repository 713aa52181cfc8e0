"""The tables of groups, queues and group messages, in memory and in SQLite. The names in SQL are
those of the first release."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING

import msgspec

from lasthop.store.groups import (
    RECENT_GROUP_MESSAGES,
    GroupChanges,
    GroupMessageRow,
    GroupRow,
    GroupsRestored,
)
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


class GroupsInMemory(MemoryTable[GroupChanges]):
    """The rows of groups, queues and group messages in memory."""

    def __init__(self) -> None:
        self.kept = GroupChanges()

    def write(self, changes: GroupChanges) -> None:
        self.kept.group_messages.update(changes.group_messages)
        for at, row in changes.records.items():
            self.kept.records[at] = row
            if not row.record:
                del self.kept.records[at]

    def read(self, spine: StoreInMemory) -> GroupsRestored:
        rows = self.kept.group_messages.values()
        over = sorted((r for r in rows if r.record and not r.open), key=lambda r: r.message)
        wanted = [row for row in rows if row.open] + over[-RECENT_GROUP_MESSAGES:]
        return GroupsRestored(
            records=[copy(row) for _, row in sorted(self.kept.records.items())],
            group_messages=[copy(row) for row in sorted(wanted, key=lambda row: row.message)],
        )

    def find(self, keys: Iterable[int]) -> dict[int, GroupMessageRow]:
        kept = self.kept.group_messages
        return {key: copy(kept[key]) for key in keys if key in kept}

    def keeps(self) -> set[int]:
        return {row.message for row in self.kept.group_messages.values() if row.open}

    def forget(self, messages: Collection[int]) -> None:
        for key in messages:
            self.kept.group_messages.pop(key, None)


_group_message = msgspec.json.Decoder(GroupMessageRow)

_OPEN = f"$[{GroupMessageRow.__struct_fields__.index('open')}]"
_RECORD = f"$[{GroupMessageRow.__struct_fields__.index('record')}]"

SCHEMA = (
    """CREATE TABLE circle (
        app TEXT NOT NULL,
        target TEXT NOT NULL,
        row TEXT NOT NULL,
        PRIMARY KEY (app, target)) WITHOUT ROWID""",
    """CREATE TABLE bond (
        message INTEGER PRIMARY KEY,
        open INTEGER NOT NULL,
        recent INTEGER NOT NULL,
        row TEXT NOT NULL)""",
    "CREATE INDEX bond_wanted ON bond (message) WHERE open OR recent",
)


class GroupsInSqlite(SqliteTable[GroupChanges]):
    """The rows of groups, queues and group messages in SQLite."""

    columns = ("circles", "bonds")
    apply = f"""
        INSERT INTO circle (app, target, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value FROM json_each(NEW.circles) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        DELETE FROM circle WHERE (app, target) IN
            (SELECT value ->> '$[0]', value ->> '$[1]' FROM json_each(NEW.circles)
            WHERE value ->> '$[2]' = '');
        INSERT INTO bond (message, open, recent, row)
            SELECT value ->> '$[0]', value ->> '{_OPEN}', value ->> '{_RECORD}' <> '', value
            FROM json_each(NEW.bonds) WHERE true
            ON CONFLICT DO UPDATE
            SET open = excluded.open, recent = excluded.recent, row = excluded.row;"""
    keeps = "SELECT message FROM bond WHERE open AND message BETWEEN ?1 AND ?2"

    def values(self, run: Sequence[GroupChanges]) -> tuple[str, ...]:
        return (
            joined(changes.records.values() for changes in run),
            joined(changes.group_messages.values() for changes in run),
        )

    def read(self, connection: sqlite3.Connection, reader: SqliteReader) -> GroupsRestored:
        rows = connection.execute(
            "SELECT row FROM bond WHERE open UNION SELECT row FROM (SELECT row FROM bond"
            " WHERE recent AND NOT open ORDER BY message DESC LIMIT ?)",
            (RECENT_GROUP_MESSAGES,),
        )
        return GroupsRestored(
            records=reader.rows("circle", GroupRow, "app, target"),
            group_messages=sorted(
                (_group_message.decode(row) for (row,) in rows), key=lambda row: row.message
            ),
        )

    def find(
        self, connection: sqlite3.Connection, keys: Iterable[int]
    ) -> dict[int, GroupMessageRow]:
        sql = f"SELECT message, row FROM bond WHERE message IN {THESE}"
        rows = connection.execute(sql, (as_json(keys),))
        return {message: _group_message.decode(row) for message, row in rows}

    def forget(self, connection: sqlite3.Connection, messages: str) -> None:
        connection.execute(f"DELETE FROM bond WHERE message IN {THESE}", (messages,))
