"""The table of what topics remember, in memory and in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from copy import copy
from typing import TYPE_CHECKING

from lasthop.store.remembered import HistoryChanges, HistoryRestored, RememberedRow
from lasthop.store.tables.base import THESE, MemoryTable, SqliteTable, StoreInMemory, joined

if TYPE_CHECKING:
    from lasthop.store.sqlite.reader import SqliteReader


class HistoryInMemory(MemoryTable[HistoryChanges]):
    """The messages that topics remember, in memory."""

    def __init__(self) -> None:
        self._rows: dict[int, RememberedRow] = {}

    def write(self, changes: HistoryChanges) -> None:
        self._rows.update(changes.rows)
        self.forget(changes.forgotten)

    def read(self, spine: StoreInMemory) -> HistoryRestored:
        return HistoryRestored([copy(row) for _, row in sorted(self._rows.items())])

    def keeps(self) -> Collection[int]:
        return self._rows.keys()

    def forget(self, messages: Collection[int]) -> None:
        for key in messages:
            self._rows.pop(key, None)

    def counts(self) -> dict[str, int]:
        return {"remembered": len(self._rows)}


SCHEMA = ("CREATE TABLE remembered (message INTEGER PRIMARY KEY, row TEXT NOT NULL)",)


class HistoryInSqlite(SqliteTable[HistoryChanges]):
    """The messages that topics remember, in SQLite."""

    columns = ("remembered", "no_longer")
    apply = """
        INSERT OR REPLACE INTO remembered (message, row)
            SELECT value ->> '$[0]', value FROM json_each(NEW.remembered);
        DELETE FROM remembered WHERE message IN (SELECT value FROM json_each(NEW.no_longer));"""
    keeps = "SELECT message FROM remembered WHERE message BETWEEN ?1 AND ?2"
    counted = (("remembered", "remembered"),)

    def values(self, run: Sequence[HistoryChanges]) -> tuple[str, ...]:
        return (
            joined(changes.rows.values() for changes in run),
            joined(changes.forgotten for changes in run),
        )

    def removes(self, changes: HistoryChanges) -> bool:
        return False  # What was forgotten is never remembered again, so the order does not matter.

    def read(self, connection: sqlite3.Connection, reader: SqliteReader) -> HistoryRestored:
        return HistoryRestored(reader.rows("remembered", RememberedRow, "message"))

    def forget(self, connection: sqlite3.Connection, messages: str) -> None:
        connection.execute(f"DELETE FROM remembered WHERE message IN {THESE}", (messages,))
