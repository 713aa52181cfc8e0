"""An inbox in one SQLite file, which the application may use for tables of its own.

A commit is on the disk when it returns (WAL, synchronous=FULL). The SDK's tables begin with
`lasthop_`; everything else that a transactional handler writes through its transaction is committed
with the message that it handled.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from lasthop.device.change import (
    NOTES,
    Change,
    DeviceFeedRow,
    DeviceKeptRow,
    DevicePieceRow,
    FlowRow,
    InboxContents,
    InboxRow,
    LaneRow,
    OutboxRow,
    RequestRow,
)
from lasthop.device.inbox_schema import prepare
from lasthop.device.packing import (
    pack,
    pack_flow,
    pack_lane,
    pack_state,
    unpack,
    unpack_flow,
    unpack_lane,
    unpack_state,
)
from lasthop.errors import StoreBroken, StoreError, StoreFull
from lasthop.private import private_database

BUSY_TIMEOUT_MS = 5000
"""Milliseconds that a statement waits for a lock: the application may have the file open elsewhere,
where its writes ought to be short."""

CACHED_STATEMENTS = 256
"""The number of compiled statements that are kept: the SDK's and those of the application's
handler."""


class SqliteTransaction:
    """Writes of the SDK and of the application to the same file that are committed together."""

    __slots__ = ("_attempt", "_database", "_inbox")

    def __init__(self, inbox: SqliteInbox, database: sqlite3.Connection) -> None:
        self._inbox = inbox
        self._database = database
        self._attempt = _Attempt(database)

    def execute(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> sqlite3.Cursor:
        """Run one SQL statement on the application's tables; it must not be COMMIT or ROLLBACK."""
        self._attempt.begin()
        return self._database.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> sqlite3.Cursor:
        """Run one SQL statement once for each set of parameters."""
        self._attempt.begin()
        return self._database.executemany(sql, parameters)

    def get(self, name: str) -> bytes | None:
        row = self._database.execute(
            "SELECT value FROM lasthop_notes WHERE name = ?", (name,)
        ).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, name: str, value: bytes) -> None:
        self._attempt.begin()
        self._database.execute("INSERT OR REPLACE INTO lasthop_notes VALUES (?, ?)", (name, value))

    def apply(self, change: Change) -> None:
        with _blamed():
            self._inbox.write(change)

    def attempt(self) -> AbstractContextManager[None]:
        return self._attempt


class _Attempt:
    """A part of a transaction that can be undone. Its savepoint is made by the first write in the
    `with` block, so that a handler that writes nothing does not pay for one."""

    __slots__ = ("_begun", "_execute", "_open")

    def __init__(self, database: sqlite3.Connection) -> None:
        self._execute = database.execute
        self._open = False
        self._begun = False

    def begin(self) -> None:
        """Make the savepoint, if there is none yet, before a write."""
        if self._open and not self._begun:
            self._execute("SAVEPOINT lasthop")
            self._begun = True

    def __enter__(self) -> None:
        self._open = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open = False
        if self._begun:
            self._begun = False
            if kind is not None:
                self._execute("ROLLBACK TO lasthop")
            self._execute("RELEASE lasthop")


class SqliteInbox:
    """The durable inbox of one device in an SQLite file, for one process at a time."""

    def __init__(self, path: str | os.PathLike[str], *, power_safe: bool = True) -> None:
        """Open the file, or create it. Raises StoreBroken if another process uses it, or if it
        cannot be read.

        Without `power_safe` (synchronous=NORMAL) a commit survives the process but not always the
        machine. Received messages that are lost so come again; messages in the outbox do not.
        """
        self._path = Path(path)
        self._lock = _lock(self._path)
        try:
            with _blamed():
                self._database = self._open(power_safe)
        except BaseException:
            os.close(self._lock)
            raise
        self._generation = 0
        self._closed = False

    def _open(self, power_safe: bool) -> sqlite3.Connection:
        private_database(self._path)
        database = sqlite3.connect(
            self._path,
            isolation_level=None,
            # The file is opened in one thread and used in the inbox's own, never in two at a time.
            check_same_thread=False,
            cached_statements=CACHED_STATEMENTS,
        )
        try:
            database.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
            prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def load(self) -> InboxContents:
        with _blamed():
            return self._load()

    def _load(self) -> InboxContents:
        execute = self._use().execute
        ((packed,),) = execute("SELECT state FROM lasthop_session").fetchall()
        state = unpack_state(packed)
        self._generation = state.generation
        return InboxContents(
            state=state,
            inbox=[
                InboxRow(position, number, unpack(frame), default_type, lane, numbered_in)
                for lane, position, numbered_in, number, default_type, frame in execute(
                    "SELECT * FROM lasthop_inbox ORDER BY lane, position"
                )
            ],
            lanes=[
                LaneRow(bool(incoming), lane, unpack_lane(numbers, incoming=bool(incoming)))
                for incoming, lane, numbers in execute(
                    "SELECT incoming, id, state FROM lasthop_lane ORDER BY incoming, id"
                )
            ],
            outbox=[
                OutboxRow(number, unpack(frame), lane)
                for lane, number, frame in execute(
                    "SELECT lane, number, frame FROM lasthop_outbox ORDER BY lane, number"
                )
            ],
            old_keys=self._keys(state.generation - 1),
            young_keys=self._keys(state.generation),
            kept=[
                DeviceKeptRow(key, rank, unpack(frame), default_type)
                for key, rank, default_type, frame in execute(
                    "SELECT key, rank, default_type, frame FROM lasthop_kept ORDER BY place"
                )
            ],
            feeds=[DeviceFeedRow(*row) for row in execute("SELECT topic, most FROM lasthop_feed")],
            requests=[
                RequestRow(*row) for row in execute("SELECT * FROM lasthop_request ORDER BY key")
            ],
            flows=[
                FlowRow(key, bool(incoming), unpack_flow(flow))
                for key, incoming, flow in execute("SELECT key, incoming, state FROM lasthop_flow")
            ],
            pieces=[
                DevicePieceRow(key, bool(incoming), offset, body)
                for key, incoming, offset, body in execute(
                    "SELECT * FROM lasthop_piece ORDER BY key, incoming, 3"
                )
            ],
            notes={
                name: bytes(value)
                for name, value in execute(
                    "SELECT name, value FROM lasthop_notes WHERE name IN (?, ?)", NOTES
                )
                if value
            },
        )

    def _keys(self, generation: int) -> list[int]:
        keys = array("q")
        for (packed,) in self._use().execute(
            "SELECT keys FROM lasthop_keys WHERE generation = ? ORDER BY id", (generation,)
        ):
            keys.frombytes(packed)
        return keys.tolist()

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        database = self._use()
        with _blamed():
            # Take the write lock now: an upgrade in mid-transaction fails without waiting.
            database.execute("BEGIN IMMEDIATE")
        try:
            yield SqliteTransaction(self, database)
            with _blamed():
                database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

    def apply(self, change: Change) -> None:
        with self.transaction() as transaction:
            transaction.apply(change)

    def write(self, change: Change) -> None:
        """Write a change within the open transaction."""
        database = self._use()
        self._write_inbox(change)
        self._remember(change)
        if change.kept or change.discarded or change.reranked or change.feeds:
            self._write_kept(change)
        self._write_outbox(change)
        if change.requested or change.settled:
            self._write_requests(change)
        if change.pieces or change.dropped_pieces or change.flows:
            self._write_streams(change)
        if change.notes:
            database.executemany(
                "INSERT OR REPLACE INTO lasthop_notes VALUES (?, ?)", change.notes.items()
            )
        database.execute("UPDATE lasthop_session SET state = ?", (pack_state(change.state),))

    def _write_inbox(self, change: Change) -> None:
        database = self._use()
        if change.detached:
            database.execute("UPDATE lasthop_inbox SET number = NULL, numbered_in = 0")
            database.execute("DELETE FROM lasthop_lane")
        for lane, position, new in change.moved:
            if new is None:
                database.execute(
                    "DELETE FROM lasthop_inbox WHERE lane = ? AND position = ?", (lane, position)
                )
            else:
                database.execute(
                    "UPDATE lasthop_inbox SET lane = 0, position = ?"
                    " WHERE lane = ? AND position = ?",
                    (new, lane, position),
                )
        if change.stored:
            database.executemany(
                "INSERT INTO lasthop_inbox VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (r.lane, r.position, r.numbered_in, r.number, r.default_type, pack(r.frame))
                    for r in change.stored
                ],
            )
        if change.adopted:
            database.executemany(
                "UPDATE lasthop_inbox SET numbered_in = ?, number = ?"
                " WHERE lane = ? AND position = ?",
                [
                    (numbered_in, number, lane, position)
                    for lane, position, numbered_in, number in change.adopted
                ],
            )
        for lane, positions in change.removed.items():
            database.executemany(
                "DELETE FROM lasthop_inbox WHERE lane = ? AND position BETWEEN ? AND ?",
                [(lane, first, last) for first, last in _runs(positions)],
            )
        if change.lanes:
            self._write_lanes(change.lanes)

    def _write_lanes(self, rows: Iterable[LaneRow]) -> None:
        database = self._use()
        for row in rows:
            if row.numbers is None:
                database.execute(
                    "DELETE FROM lasthop_lane WHERE incoming = ? AND id = ?",
                    (row.incoming, row.id),
                )
            else:
                database.execute(
                    "INSERT OR REPLACE INTO lasthop_lane VALUES (?, ?, ?)",
                    (row.incoming, row.id, pack_lane(row.numbers)),
                )

    def _write_kept(self, change: Change) -> None:
        database = self._use()
        database.executemany(
            "DELETE FROM lasthop_kept WHERE key = ?", [(key,) for key in change.discarded]
        )
        database.executemany(
            "INSERT INTO lasthop_kept (key, rank, default_type, frame) VALUES (?, ?, ?, ?)",
            [(r.key, r.rank, r.default_type, pack(r.frame)) for r in change.kept],
        )
        database.executemany(
            "UPDATE lasthop_kept SET rank = ? WHERE key = ?",
            [(rank, key) for key, rank in change.reranked],
        )
        for feed in change.feeds:
            if feed.gone:
                database.execute("DELETE FROM lasthop_feed WHERE topic = ?", (feed.topic,))
            else:
                database.execute(
                    "INSERT OR REPLACE INTO lasthop_feed VALUES (?, ?)", (feed.topic, feed.max)
                )

    def _write_streams(self, change: Change) -> None:
        database = self._use()
        database.executemany(
            "INSERT OR REPLACE INTO lasthop_piece VALUES (?, ?, ?, ?)",
            [(piece.key, piece.incoming, piece.offset, piece.body) for piece in change.pieces],
        )
        database.executemany(
            'DELETE FROM lasthop_piece WHERE key = ? AND incoming = ? AND "offset" < ?',
            change.dropped_pieces,
        )
        for flow in change.flows:
            if flow.state is None:
                database.execute(
                    "DELETE FROM lasthop_flow WHERE key = ? AND incoming = ?",
                    (flow.key, flow.incoming),
                )
            else:
                database.execute(
                    "INSERT OR REPLACE INTO lasthop_flow VALUES (?, ?, ?)",
                    (flow.key, flow.incoming, pack_flow(flow.state)),
                )

    def _write_outbox(self, change: Change) -> None:
        database = self._use()
        if change.queued:
            database.executemany(
                "INSERT INTO lasthop_outbox VALUES (?, ?, ?, ?)",
                [(r.frame.key, r.number, pack(r.frame), r.lane) for r in change.queued],
            )
        if change.renumbered:
            database.executemany(
                "UPDATE lasthop_outbox SET lane = ?, number = ? WHERE key = ?",
                [(lane, number, key) for key, lane, number in change.renumbered],
            )
        if change.taken:
            database.executemany(
                "DELETE FROM lasthop_outbox WHERE key = ?", [(key,) for key in change.taken]
            )

    def _write_requests(self, change: Change) -> None:
        database = self._use()
        database.executemany(
            "INSERT INTO lasthop_request VALUES (?, ?, ?, ?, ?)",
            [(r.key, r.deadline, r.callback, r.target, r.lane) for r in change.requested],
        )
        database.executemany(
            "DELETE FROM lasthop_request WHERE key = ?", [(key,) for key in change.settled]
        )

    def _remember(self, change: Change) -> None:
        database = self._use()
        generation = change.state.generation
        if generation != self._generation:
            database.execute("DELETE FROM lasthop_keys WHERE generation < ?", (generation - 1,))
            self._generation = generation
        if change.keys:
            database.execute(
                "INSERT INTO lasthop_keys (generation, keys) VALUES (?, ?)",
                (generation, array("q", change.keys).tobytes()),
            )

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._database.close()
            os.close(self._lock)

    def _use(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreBroken("the inbox is closed")
        return self._database


def _lock(path: Path) -> int:
    """Lock the inbox against other processes; the lock ends with this process, however that
    ends."""
    try:
        handle = os.open(f"{path}-lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreBroken("the inbox cannot be opened", error=error.strerror) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StoreBroken("another process uses this inbox", path=str(path)) from None
    return handle


def _runs(positions: list[int]) -> list[tuple[int, int]]:
    """Return positions as closed ranges; messages are mostly finished in order, so these are
    few."""
    runs: list[tuple[int, int]] = []
    for position in sorted(positions):
        if runs and runs[-1][1] == position - 1:
            runs[-1] = (runs[-1][0], position)
        else:
            runs.append((position, position))
    return runs


@contextmanager
def _blamed() -> Iterator[None]:
    """Turn errors of SQLite into StoreError; used around the SDK's own statements only, so that the
    application sees its own errors unchanged."""
    try:
        yield
    except sqlite3.Error as error:
        raise _fault(error) from error


def _fault(error: sqlite3.Error) -> StoreError:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return StoreFull("there is no room on the disk for the inbox")
    return StoreBroken("the inbox cannot be used", error=str(error))
