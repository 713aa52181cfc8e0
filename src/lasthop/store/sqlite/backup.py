"""Copies a store while it is in use, and restores such a copy."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from lasthop.errors import StoreBroken
from lasthop.private import DIRECTORY
from lasthop.store.sqlite.connection import FILE_NAME, connect, store_errors
from lasthop.store.sqlite.migrations import check_version, version_of

INCARNATION_BITS = 63
"""The size of a store's incarnation: it fits a signed integer, and no two stores will draw the
same."""


def new_incarnation() -> int:
    """Return a random incarnation for a new or restored store."""
    return secrets.randbits(INCARNATION_BITS)


def copy_into(source: sqlite3.Connection, path: Path) -> None:
    """Copy a store as it is at this moment; `path` appears when the copy is complete."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        with closing(connect(partial, mode="rwc")) as target:
            source.backup(target)
            # A backup is a single file, without a log beside it.
            target.execute("PRAGMA journal_mode = DELETE")
        _publish(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def restore(backup: Path, into: Path) -> int:
    """Make a data directory from a backup; return the new incarnation that the store gets.

    Devices that resume with the old incarnation learn from it that the gateway has forgotten what
    came after the backup.
    """
    if not backup.is_file():
        raise StoreBroken("there is no such backup", path=str(backup))
    if (into / FILE_NAME).exists():
        raise StoreBroken("there is a store in this directory already", directory=str(into))
    into.mkdir(mode=DIRECTORY, parents=True, exist_ok=True)
    incarnation = new_incarnation()
    partial = into / (FILE_NAME + ".partial")
    partial.unlink(missing_ok=True)
    try:
        with store_errors():
            with closing(connect(backup, mode="ro")) as source:
                _check(source, backup)
                copy_into(source, partial)
            with closing(connect(partial, mode="rw")) as copy:
                copy.execute("UPDATE meta SET incarnation = ?", (incarnation,))
        _publish(partial, into / FILE_NAME)
    finally:
        partial.unlink(missing_ok=True)
    return incarnation


def _check(source: sqlite3.Connection, backup: Path) -> None:
    version = version_of(source)
    check_version(version)
    if not version or source.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise StoreBroken("the backup is damaged", path=str(backup))


def _publish(partial: Path, path: Path) -> None:
    """Give a complete file its final name, durably."""
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
