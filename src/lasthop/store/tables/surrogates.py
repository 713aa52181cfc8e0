"""The tables of surrogates, in memory and in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING

from lasthop.message import Message
from lasthop.store.surrogates import (
    ConsultRow,
    RevisionRow,
    StateRow,
    SurrogateChanges,
    SurrogatesRestored,
)
from lasthop.store.tables.base import (
    THESE,
    MemoryTable,
    SqliteTable,
    StoreInMemory,
    joined,
)

if TYPE_CHECKING:
    from lasthop.store.sqlite.reader import SqliteReader

HELD_AT_ONCE = 64
"""Messages of devices that are read together at the start: their bodies may be large, and not all
of them fit into memory."""


class SurrogatesInMemory(MemoryTable[SurrogateChanges]):
    """The rows of surrogates in memory."""

    def __init__(self) -> None:
        self.kept = SurrogateChanges()

    def write(self, changes: SurrogateChanges) -> None:
        kept = self.kept
        for number, consult in changes.consults.items():
            kept.consults[number] = copy(consult)
            if consult.done:
                del kept.consults[number]
        for name, entry in changes.states.items():
            kept.states[name] = entry
            if not entry.value:
                del kept.states[name]
        kept.revisions.update((key, copy(row)) for key, row in changes.revisions.items())

    def read(self, spine: StoreInMemory) -> SurrogatesRestored:
        kept = self.kept
        consults = [copy(row) for _, row in sorted(kept.consults.items())]
        held = sorted(row.message for row in consults if row.from_device)
        return SurrogatesRestored(
            consults=consults,
            states=[copy(row) for _, row in sorted(kept.states.items())],
            revisions=[copy(row) for _, row in sorted(kept.revisions.items()) if row.open],
            held=spine.read_messages(held).values(),
        )

    def keeps(self) -> set[int]:
        revised = {row.content for row in self.kept.revisions.values() if row.open}
        return revised | {row.message for row in self.kept.consults.values()}

    def made_for(self, device: int) -> list[int]:
        return [row.content for row in self.kept.revisions.values() if row.device == device]

    def forget(self, messages: Collection[int]) -> None:
        for key in messages:
            self.kept.revisions.pop(key, None)


_DONE = f"$[{ConsultRow.__struct_fields__.index('done')}]"
_OPEN = f"$[{RevisionRow.__struct_fields__.index('open')}]"

SCHEMA = (
    "CREATE TABLE consult (number INTEGER PRIMARY KEY, message INTEGER NOT NULL, row TEXT)",
    "CREATE INDEX consult_message ON consult (message)",
    """CREATE TABLE surrogate_state (
        app TEXT NOT NULL,
        name TEXT NOT NULL,
        row TEXT NOT NULL,
        PRIMARY KEY (app, name)) WITHOUT ROWID""",
    # Kept as long as the content is, so that it can be erased with its device.
    """CREATE TABLE revision (
        content INTEGER PRIMARY KEY,
        device INTEGER NOT NULL,
        open INTEGER NOT NULL,
        row TEXT NOT NULL)""",
    "CREATE INDEX revision_device ON revision (device)",
    "CREATE INDEX open_revision ON revision (content) WHERE open",
)


class SurrogatesInSqlite(SqliteTable[SurrogateChanges]):
    """The rows of surrogates in SQLite."""

    columns = ("consults", "states", "revisions")
    apply = f"""
        INSERT INTO consult (number, message, row)
            SELECT value ->> '$[0]', value ->> '$[3]', value
            FROM json_each(NEW.consults) WHERE NOT value ->> '{_DONE}'
            ON CONFLICT DO UPDATE SET message = excluded.message, row = excluded.row;
        DELETE FROM consult WHERE number IN
            (SELECT value ->> '$[0]' FROM json_each(NEW.consults) WHERE value ->> '{_DONE}');
        INSERT INTO surrogate_state (app, name, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value
            FROM json_each(NEW.states) WHERE value ->> '$[2]' <> ''
            ON CONFLICT DO UPDATE SET row = excluded.row;
        DELETE FROM surrogate_state WHERE (app, name) IN
            (SELECT value ->> '$[0]', value ->> '$[1]' FROM json_each(NEW.states)
            WHERE value ->> '$[2]' = '');
        INSERT INTO revision (content, device, open, row)
            SELECT value ->> '$[0]', value ->> '$[2]', value ->> '{_OPEN}', value
            FROM json_each(NEW.revisions) WHERE true
            ON CONFLICT DO UPDATE SET open = excluded.open, row = excluded.row;"""
    keeps = """SELECT message FROM consult WHERE message BETWEEN ?1 AND ?2
        UNION SELECT content FROM revision WHERE open AND content BETWEEN ?1 AND ?2"""

    def values(self, run: Sequence[SurrogateChanges]) -> tuple[str, ...]:
        return (
            joined(changes.consults.values() for changes in run),
            joined(changes.states.values() for changes in run),
            joined(changes.revisions.values() for changes in run),
        )

    def read(self, connection: sqlite3.Connection, reader: SqliteReader) -> SurrogatesRestored:
        consults = reader.rows("consult", ConsultRow, "number")
        return SurrogatesRestored(
            consults=consults,
            states=reader.rows("surrogate_state", StateRow, "app, name"),
            revisions=reader.rows("revision WHERE open", RevisionRow, "content"),
            held=_held(reader, sorted(row.message for row in consults if row.from_device)),
        )

    def made_for(self, connection: sqlite3.Connection, device: int) -> list[int]:
        sql = "SELECT content FROM revision WHERE device = ? ORDER BY content"
        return [content for (content,) in connection.execute(sql, (device,))]

    def forget(self, connection: sqlite3.Connection, messages: str) -> None:
        connection.execute(f"DELETE FROM revision WHERE content IN {THESE}", (messages,))


def _held(reader: SqliteReader, keys: list[int]) -> Iterator[Message]:
    for start in range(0, len(keys), HELD_AT_ONCE):
        yield from reader.messages(keys[start : start + HELD_AT_ONCE]).values()
