"""Connections to the store's file, and what SQLite's errors mean for the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lasthop.errors import StoreBroken, StoreError, StoreFull
from lasthop.private import private_database

FILE_NAME = "store.db"

OLDEST_SQLITE = (3, 38, 0)
"""The oldest SQLite that has `->>`. Pythons are built with whatever SQLite was there: Ubuntu 22.04
has 3.37."""

BUSY_TIMEOUT_MS = 5_000
"""Milliseconds to wait for a lock. The directory's lock keeps other gateways out, so only a person
with a database tool can hold one."""

CACHE_KIB = 64 * 1024
"""The writer's cache in KiB: holds the newest deliveries, which are the ones that are updated."""

PAGE_SIZE = 8192
"""Bytes of a database page. Bodies and events are long runs of bytes, which take half as many
frames as with SQLite's 4096. From 4 to 32 KiB the rate of commits was the same within the noise."""

_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
"""SQLite's errors for a full disk; the second is reported when the shared index of the log cannot
grow."""

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn SQLite's errors into the store's own."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error) from error


def _translated(error: sqlite3.Error) -> StoreError:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    if isinstance(error, sqlite3.ProgrammingError) and "closed database" in str(error):
        return StoreBroken("the store is closed")
    if code in _FULL:
        return StoreFull("no room left for the store", sqlite=name)
    if code is not None and code & 0xFF in _BUSY:
        return StoreError("another program holds the store's file locked", sqlite=name)
    if code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreBroken("the store's file is damaged", sqlite=name)
    return StoreBroken("the store failed", sqlite=name, cause=str(error))


def connect(path: Path, *, mode: str) -> sqlite3.Connection:
    """Connect with `mode` ro, rw or rwc; rwc makes the file readable by its owner alone. The caller
    begins and ends transactions."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StoreBroken("SQLite is too old", found=sqlite3.sqlite_version, needed=needed)
    if mode == "rwc":
        private_database(path)
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block as one transaction, which is rolled back if anything fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
