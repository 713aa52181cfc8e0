"""Disks for rehearsed gateways: one in memory, and a real SQLite store whose log is cut."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random

from lasthop.store.base import Durability, Store
from lasthop.store.commit import Commit
from lasthop.store.memory import MemoryStore
from lasthop.store.sqlite import SqliteStore
from lasthop.store.sqlite.faults import copy_after_crash, log_frames


class MemoryDisk:
    """A disk in memory that keeps exactly what was applied, or goes back to a backup."""

    def __init__(self) -> None:
        self._store = MemoryStore()
        self._backup: MemoryStore | None = None

    def open(self) -> Store:
        return self._store

    def take_backup(self) -> None:
        """Copy the present content of the disk as its backup."""
        self._backup = deepcopy(self._store)

    @property
    def has_backup(self) -> bool:
        return self._backup is not None

    def backup_bodies(self) -> list[bytes]:
        """Return the bodies of all messages in the backup."""
        assert self._backup is not None
        keys = {row.message for row in self._backup.all_deliveries()}
        return [message.body for message in self._backup.messages(keys).values()]

    def crash(self, writing: Commit | None) -> None:
        """Lose the commit that was being written; if there is a backup, go back to it."""
        if self._backup is not None:
            self._store, self._backup = self._backup, None
        self._store = self._store.crash()


class SqliteDisk:
    """A SQLite store in a directory. A crash cuts its log anywhere after the last confirmed commit.

    The store does not sync, since only the process dies here; what a loss of power leaves behind is
    made by cutting the log.
    """

    def __init__(self, directory: Path, random: Random) -> None:
        self._directory = directory
        self._random = random
        self._life = 0
        self._store: SqliteStore | None = None

    @property
    def _place(self) -> Path:
        return self._directory / f"life-{self._life}"

    def open(self) -> Store:
        self._store = SqliteStore(self._place, durability=Durability.RELAXED)
        return self._store

    def crash(self, writing: Commit | None) -> None:
        """Crash the store; any part of the commit that was being written may be in the log."""
        store = self._store
        assert store is not None
        confirmed = self._log_end()
        if writing is not None:
            store.apply(writing)
        keep = self._random.choice((confirmed, self._log_end(), None))
        if keep is None:
            keep = self._random.randint(confirmed, self._log_end())
        old = self._place
        self._life += 1
        copy_after_crash(old, self._place, keep_bytes=keep)
        store.close()
        for file in old.iterdir():
            file.unlink()
        old.rmdir()

    def _log_end(self) -> int:
        frames = log_frames(self._place)
        return frames[-1].end if frames else 0
