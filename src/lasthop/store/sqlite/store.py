"""The SQLite store with the one connection that writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lasthop.clock import Micros
from lasthop.errors import StoreBroken, StoreFull
from lasthop.message import MAX_KEY, first_key_at
from lasthop.private import DIRECTORY
from lasthop.store.base import RECENT_KEYS, Durability, Forgotten, check_sequence
from lasthop.store.commit import (
    Commit,
    CredentialRow,
    DeviceRow,
    FanoutRow,
    KeyRow,
    MemoryRow,
    Restored,
    SessionRow,
)
from lasthop.store.sqlite.backup import new_incarnation
from lasthop.store.sqlite.check import check_newest
from lasthop.store.sqlite.connection import (
    CACHE_KIB,
    FILE_NAME,
    PAGE_SIZE,
    connect,
    store_errors,
    transaction,
)
from lasthop.store.sqlite.forgetting import (
    erase_deliveries,
    retire_events,
    retire_keys,
    retire_messages,
)
from lasthop.store.sqlite.lock import DirectoryLock
from lasthop.store.sqlite.migrations import MIGRATIONS, Migration, migrate
from lasthop.store.sqlite.reader import SqliteReader
from lasthop.store.sqlite.writing import SETUP, write
from lasthop.store.tables import TABLES

CHECKPOINT_BYTES = 64 * 1024 * 1024
"""The size at which the log is copied into the file. Pages that are written several times until
then, which are those of deliveries, are copied once."""

LOG_SHARE = 8
"""The log is copied earlier on a small disk: when it has an eighth of the room that there was.
Copying it may take as much room again, because the file grows."""

_SYNCHRONOUS = {Durability.FULL: "FULL", Durability.RELAXED: "OFF"}


class SqliteStore(SqliteReader):
    """A store in a data directory; see `Store` for what the methods promise."""

    def __init__(
        self,
        directory: Path,
        *,
        durability: Durability = Durability.FULL,
        incarnation: int | None = None,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> None:
        # A directory that exists may be shared with others; the files in it may not.
        directory.mkdir(mode=DIRECTORY, parents=True, exist_ok=True)
        self._lock = DirectoryLock(directory)
        path = directory / FILE_NAME
        try:
            with store_errors():
                super().__init__(connect(path, mode="rwc"), path)
                self._prepare(durability, incarnation, migrations)
        except BaseException:
            self.close()
            raise

    def _prepare(
        self, durability: Durability, incarnation: int | None, migrations: Sequence[Migration]
    ) -> None:
        execute = self._connection.execute
        execute(f"PRAGMA page_size = {PAGE_SIZE}")
        migrate(
            self._connection,
            incarnation=new_incarnation() if incarnation is None else incarnation,
            migrations=migrations,
        )
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._fit_log()
        execute("PRAGMA secure_delete = FAST")
        for statement in SETUP:
            execute(statement)
        check_newest(self._connection)
        self._must_wipe = False
        self._next_commit, self._next_event, self._last_key = execute(
            "SELECT next_commit, next_event, last_key FROM meta"
        ).fetchone()

    def open(self) -> Restored:
        with store_errors(), transaction(self._connection):
            self._connection.execute("UPDATE meta SET boot = boot + 1")
        ((incarnation, boot, next_device),) = self._all(
            "SELECT incarnation, boot, next_device FROM meta"
        )
        newest = f"at DESC, app DESC, key DESC LIMIT {RECENT_KEYS}"
        return Restored(
            incarnation=incarnation,
            boot=boot,
            next_commit=self._next_commit,
            next_event=self._next_event,
            last_key=self._last_key,
            next_device=next_device,
            devices=self.rows("device", DeviceRow, "device"),
            sessions=self.rows("session", SessionRow, "device"),
            open=self.open_messages(),
            fanouts=self.rows("fanout", FanoutRow, "message"),
            keys=self.rows("idempotency", KeyRow, newest)[::-1],
            credentials=self.rows("credential", CredentialRow, "hash"),
            memories=self.rows("memory", MemoryRow, "device, name"),
            kept={type(rows): rows for rows in self._kept()},
        )

    def _kept(self) -> list[object]:
        with store_errors():
            return [table.sqlite.read(self._connection, self) for table in TABLES]

    def apply(self, *commits: Commit) -> None:
        check_sequence(
            commits,
            next_commit=self._next_commit,
            next_event=self._next_event,
            last_key=self._last_key,
        )
        if not commits:
            return
        try:
            self._write(commits)
        except StoreFull:
            if not self._make_room():
                raise
            self._write(commits)
        for commit in commits:
            self._next_commit = commit.n + 1
            self._next_event += commit.event_count
            if commit.messages:
                self._last_key = commit.messages[-1].key

    def _write(self, commits: Sequence[Commit]) -> None:
        with store_errors():
            write(self._connection, commits, next_event=self._next_event)

    def _make_room(self) -> bool:
        """Give the log's room back to the disk; return whether that could be done."""
        try:
            emptied = self._empty_log()
        except StoreFull:
            return False
        self._fit_log()
        return emptied

    def _fit_log(self) -> None:
        """Choose the size at which the log is copied into the file by the room that there is."""
        execute = self._connection.execute
        room = shutil.disk_usage(self._path.parent).free // LOG_SHARE
        (page_size,) = execute("PRAGMA page_size").fetchone()
        pages = max(1, min(CHECKPOINT_BYTES, room) // page_size)
        execute(f"PRAGMA wal_autocheckpoint = {pages}")

    def _empty_log(self) -> bool:
        """Copy the log into the file and truncate it, unless a reader looks at an older state."""
        with store_errors():
            (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def exported(self, until: int) -> None:
        if until > self._next_event:
            raise StoreBroken(
                "events that do not exist yet cannot have been exported",
                until=until,
                next=self._next_event,
            )
        with store_errors():
            self._connection.execute(
                "UPDATE meta SET exported_to = ?1 WHERE exported_to < ?1", (until,)
            )

    def retire(
        self,
        *,
        messages_before: Micros,
        keys_before: Micros,
        keep_events: int = 0,
        start: int = 0,
    ) -> Forgotten:
        before = min(first_key_at(messages_before), MAX_KEY)
        with self._overwriting():
            messages = retire_messages(self._connection, before=before, start=start)
        with store_errors(), transaction(self._connection):
            keys = retire_keys(self._connection, before=keys_before)
            events = retire_events(self._connection, keep=keep_events)
            for table in TABLES:
                table.sqlite.retire(self._connection, before)
        again = messages.next
        if again is None and (keys.next is not None or events.next is not None):
            again = before
        self._wipe()
        return Forgotten(messages.messages, messages.deliveries, keys.keys, events.events, again)

    def erase_device(self, device: int, *, start: int = 0) -> Forgotten:
        with self._overwriting():
            erased = erase_deliveries(self._connection, device, start=start)
            if erased.next is None:
                self._connection.execute("DELETE FROM device WHERE device = ?", (device,))
                self._connection.execute("DELETE FROM session WHERE device = ?", (device,))
                self._connection.execute("DELETE FROM memory WHERE device = ?", (device,))
                self._must_wipe = True
        self._wipe()
        return erased

    @contextmanager
    def _overwriting(self) -> Iterator[None]:
        """Run a transaction that overwrites all it deletes: no body may remain in a free page.

        Commits delete no bodies, and are faster without.
        """
        with store_errors():
            self._connection.execute("PRAGMA secure_delete = ON")
            try:
                with transaction(self._connection):
                    yield
            finally:
                self._connection.execute("PRAGMA secure_delete = FAST")

    def _wipe(self) -> None:
        """Empty the log, which still has what was erased from the file.

        While a reader looks at an older state this has to wait; then `retire` or `close` does it.
        """
        if self._must_wipe:
            self._must_wipe = not self._empty_log()

    def reader(self) -> SqliteReader:
        return SqliteReader.beside(self._path.parent)

    def close(self) -> None:
        if hasattr(self, "_connection"):
            super().close()
        self._lock.release()
