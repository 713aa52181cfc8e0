"""The table of lanes, in memory and in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from lasthop.store.lanes import LaneChanges, LanesRestored, SessionLaneRow
from lasthop.store.tables.base import MemoryTable, SqliteTable, StoreInMemory, joined

if TYPE_CHECKING:
    from lasthop.store.sqlite.reader import SqliteReader


class LanesInMemory(MemoryTable[LaneChanges]):
    """The rows of lanes in memory."""

    def __init__(self) -> None:
        self.kept = LaneChanges()

    def write(self, changes: LaneChanges) -> None:
        lanes = self.kept.lanes
        for at, row in changes.lanes.items():
            lanes[at] = row
            if not row.record:
                del lanes[at]

    def read(self, spine: StoreInMemory) -> LanesRestored:
        return LanesRestored([copy(row) for _, row in sorted(self.kept.lanes.items())])


SCHEMA = (
    """CREATE TABLE lane (
        device INTEGER NOT NULL,
        inbound INTEGER NOT NULL,
        lane INTEGER NOT NULL,
        row TEXT NOT NULL,
        PRIMARY KEY (device, inbound, lane)) WITHOUT ROWID""",
)


class LanesInSqlite(SqliteTable[LaneChanges]):
    """The rows of lanes in SQLite."""

    columns = ("lanes",)
    apply = """
        INSERT INTO lane (device, inbound, lane, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value
            FROM json_each(NEW.lanes) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        DELETE FROM lane WHERE (device, inbound, lane) IN
            (SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]'
            FROM json_each(NEW.lanes) WHERE value ->> '$[3]' = '');"""

    def values(self, run: Sequence[LaneChanges]) -> tuple[str, ...]:
        return (joined(changes.lanes.values() for changes in run),)

    def read(self, connection: sqlite3.Connection, reader: SqliteReader) -> LanesRestored:
        return LanesRestored(reader.rows("lane", SessionLaneRow, "device, inbound, lane"))
