"""Groups, queues and bonds in SQLite: one more statement, for the commits that have some of
them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from lasthop.store.bonds import RECENT_BONDS, BondRow
from lasthop.store.commit import Commit

_json = msgspec.json.Encoder()
_bond = msgspec.json.Decoder(BondRow)

_OPEN = f"$[{BondRow.__struct_fields__.index('open')}]"
_RECORD = f"$[{BondRow.__struct_fields__.index('record')}]"

SETUP = (
    "CREATE TEMP VIEW incoming_bonds AS SELECT '' AS circles, '' AS bonds",
    f"""CREATE TEMP TRIGGER apply_bonds INSTEAD OF INSERT ON incoming_bonds BEGIN
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
            SET open = excluded.open, recent = excluded.recent, row = excluded.row;
    END""",
)

TABLES = (
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


def write_bonds(connection: sqlite3.Connection, run: Sequence[Commit]) -> None:
    """Write what these commits change, in the transaction that is open."""
    for commit in run:
        if commit.bonds is not None:
            parts = (commit.bonds.circles.values(), commit.bonds.bonds.values())
            values = tuple(_json.encode(list(part)).decode() for part in parts)
            connection.execute("INSERT INTO incoming_bonds VALUES (?, ?)", values)


def wanted_bonds(connection: sqlite3.Connection) -> list[BondRow]:
    """The open ones, and the newest that are over and have a record, by message."""
    rows = connection.execute(
        "SELECT row FROM bond WHERE open UNION SELECT row FROM (SELECT row FROM bond"
        " WHERE recent AND NOT open ORDER BY message DESC LIMIT ?)",
        (RECENT_BONDS,),
    )
    return sorted((_bond.decode(row) for (row,) in rows), key=lambda row: row.message)


def find_bonds(connection: sqlite3.Connection, keys: Iterable[int]) -> dict[int, BondRow]:
    """The bonds of these messages, by message."""
    rows = connection.execute(
        "SELECT row FROM bond WHERE message IN (SELECT value FROM json_each(?))",
        (_json.encode(list(keys)).decode(),),
    )
    found = (_bond.decode(row) for (row,) in rows)
    return {row.message: row for row in found}


def forget_bonds(connection: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Their messages are gone."""
    connection.execute(
        "DELETE FROM bond WHERE message IN (SELECT value FROM json_each(?))",
        (_json.encode(list(keys)).decode(),),
    )
