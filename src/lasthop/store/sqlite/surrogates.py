"""Surrogates in SQLite: one more statement, for the commits that have something of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

import msgspec

from lasthop.store.commit import Commit
from lasthop.store.surrogates import ConsultRow, RevisionRow, SurrogateChanges

_json = msgspec.json.Encoder()

_DONE = f"$[{ConsultRow.__struct_fields__.index('done')}]"
_OPEN = f"$[{RevisionRow.__struct_fields__.index('open')}]"

SETUP = (
    """CREATE TEMP VIEW incoming_surrogates AS
        SELECT '' AS consults, '' AS states, '' AS revisions""",
    f"""CREATE TEMP TRIGGER apply_surrogates INSTEAD OF INSERT ON incoming_surrogates BEGIN
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
            ON CONFLICT DO UPDATE SET open = excluded.open, row = excluded.row;
    END""",
)

TABLES = (
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

NEEDED = """SELECT message FROM consult WHERE message BETWEEN ?1 AND ?2
    UNION SELECT content FROM revision WHERE open AND content BETWEEN ?1 AND ?2"""
"""Messages in a range of keys that are still needed, though they have no delivery."""


def write_surrogates(connection: sqlite3.Connection, run: Sequence[Commit]) -> None:
    """Write what these commits change, in the transaction that is open."""
    for commit in run:
        if commit.surrogates is not None:
            connection.execute(
                "INSERT INTO incoming_surrogates VALUES (?, ?, ?)", _values(commit.surrogates)
            )


def _values(changes: SurrogateChanges) -> tuple[str, ...]:
    parts: tuple[Collection[object], ...] = (
        changes.consults.values(),
        changes.states.values(),
        changes.revisions.values(),
    )
    return tuple(_json.encode(list(part)).decode() for part in parts)


def forget_revisions(connection: sqlite3.Connection, contents: Collection[int]) -> None:
    """These contents are gone."""
    connection.execute(
        "DELETE FROM revision WHERE content IN (SELECT value FROM json_each(?))",
        (_json.encode(list(contents)).decode(),),
    )


def contents_for(connection: sqlite3.Connection, device: int) -> list[int]:
    """What surrogates made for this device, in ascending order."""
    rows = connection.execute(
        "SELECT content FROM revision WHERE device = ? ORDER BY content", (device,)
    )
    return [content for (content,) in rows]
