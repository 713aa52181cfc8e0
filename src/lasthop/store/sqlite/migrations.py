"""The schema of the SQLite store, as the numbered steps that lead to it.

A step that has been released is never changed: a new one is added. Steps run in one transaction, so
that a store is of one version or of the next. Rows are kept as the JSON that `msgspec` makes of
them, next to the columns that are searched for: a field that is added to the end of a row needs no
step here.
"""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple

from lasthop.errors import StoreBroken
from lasthop.store.sqlite.connection import transaction
from lasthop.store.tables import (
    groups,
    lane_table,
    pushes,
    ranked,
    streams,
    surrogates,
    topic_histories,
)

APPLICATION_ID = 0x6C686F70
"""The number in the file's header by which `file` and lasthop recognise a store: "lhop"."""


UPGRADED = b64encode(
    b'{"name":"upgraded","who":["device:*"],'
    b'"allow":["publish","send","subscribe","join","consume","claim"]}'
).decode()
"""The rule for what every device could do before there were rules."""


class Migration(NamedTuple):
    """One step of the schema, which leads to version `to`."""

    to: int
    statements: tuple[str, ...]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        1,
        (
            # A single row. Its numbers are the next to be used, and never decrease.
            """CREATE TABLE meta (
                one INTEGER PRIMARY KEY CHECK (one = 1),
                incarnation INTEGER NOT NULL,
                boot INTEGER NOT NULL DEFAULT 0,
                next_commit INTEGER NOT NULL DEFAULT 1,
                next_event INTEGER NOT NULL DEFAULT 0,
                last_key INTEGER NOT NULL DEFAULT 0,
                next_device INTEGER NOT NULL DEFAULT 1,
                exported_to INTEGER NOT NULL DEFAULT 0)""",
            # The messages of a commit as one msgpack array, in ascending order of key.
            """CREATE TABLE page (
                first INTEGER PRIMARY KEY,
                last INTEGER NOT NULL,
                count INTEGER NOT NULL,
                body BLOB NOT NULL)""",
            """CREATE TABLE delivery (
                message INTEGER NOT NULL,
                device INTEGER NOT NULL,
                open INTEGER NOT NULL,
                row TEXT NOT NULL,
                PRIMARY KEY (message, device)) WITHOUT ROWID""",
            "CREATE INDEX open_delivery ON delivery (message, device) WHERE open",
            "CREATE TABLE session (device INTEGER PRIMARY KEY, row TEXT NOT NULL)",
            """CREATE TABLE device (
                device INTEGER PRIMARY KEY,
                app TEXT NOT NULL,
                name TEXT NOT NULL,
                row TEXT NOT NULL)""",
            "CREATE INDEX device_name ON device (app, name)",
            # `key` is the idempotency key that a publisher chose.
            """CREATE TABLE idempotency (
                app TEXT NOT NULL,
                key TEXT NOT NULL,
                at INTEGER NOT NULL,
                row TEXT NOT NULL,
                PRIMARY KEY (app, key)) WITHOUT ROWID""",
            "CREATE INDEX idempotency_age ON idempotency (at)",
            "CREATE TABLE fanout (message INTEGER PRIMARY KEY, row TEXT NOT NULL)",
            "CREATE TABLE credential (hash TEXT PRIMARY KEY, row TEXT NOT NULL) WITHOUT ROWID",
            # JSON lines as they will be exported.
            """CREATE TABLE event_page (
                first INTEGER PRIMARY KEY,
                count INTEGER NOT NULL,
                lines BLOB NOT NULL)""",
        ),
    ),
    Migration(
        2,
        (
            # What parts of the core remember about a device (0: about all), by name.
            """CREATE TABLE memory (
                device INTEGER NOT NULL,
                name TEXT NOT NULL,
                row TEXT NOT NULL,
                PRIMARY KEY (device, name)) WITHOUT ROWID""",
        ),
    ),
    Migration(3, pushes.SCHEMA),
    Migration(4, ranked.SCHEMA),
    Migration(5, surrogates.SCHEMA),
    Migration(6, groups.SCHEMA),
    Migration(7, streams.SCHEMA),
    # No change of tables: pages of events may be compressed, which older versions cannot read.
    Migration(8, ()),
    # CRC-32 of what commits write once and never change, as zlib computes it; none of what was
    # written before this step. See `check`.
    Migration(
        9,
        (
            "ALTER TABLE page ADD COLUMN crc INTEGER",
            "ALTER TABLE event_page ADD COLUMN crc INTEGER",
        ),
    ),
    # Devices could do everything before there were rules. What a used store allowed is now a rule,
    # which can be seen and removed: [0, its name, its JSON in base64]. A new store has none.
    Migration(
        10,
        (
            f"""INSERT INTO memory (device, name, row)
                SELECT 0, 'rule:*/upgraded', '[0,"rule:*/upgraded","{UPGRADED}"]'
                FROM meta WHERE boot > 0""",
        ),
    ),
    # Lanes beside lane 0. Older programs would drop the lane of a delivery, which their rows lack.
    Migration(11, lane_table.SCHEMA),
    # Topics begin with what they are sent from now on.
    Migration(12, topic_histories.SCHEMA),
)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of this store, 0 for a new one; raise StoreBroken if the file is not a
    store."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreBroken("this file is not a lasthop store", application_id=application)
    return version


def check_version(version: int, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Raise StoreBroken for a store of a newer version, whose rows may mean something unknown
    here."""
    newest = migrations[-1].to
    if version > newest:
        raise StoreBroken(
            "the store was written by a newer lasthop; upgrade, or restore an older backup",
            store_version=version,
            newest_known=newest,
        )


def migrate(
    connection: sqlite3.Connection,
    *,
    incarnation: int,
    migrations: Sequence[Migration] = MIGRATIONS,
) -> None:
    """Bring a store to the newest version; a new store gets this incarnation."""
    version = version_of(connection)
    check_version(version, migrations)
    if version == migrations[-1].to:
        return
    with transaction(connection):
        for step in migrations[version:]:
            for statement in step.statements:
                connection.execute(statement)
        if version == 0:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("INSERT INTO meta (one, incarnation) VALUES (1, ?)", (incarnation,))
        connection.execute(f"PRAGMA user_version = {migrations[-1].to}")
