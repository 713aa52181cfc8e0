"""What only a file can do: be full, foreign, locked, and survive `kill -9`."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from lasthop.device.change import Change, InboxRow, OutboxRow, SessionNumbers
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.packing import pack
from lasthop.errors import StoreBroken, StoreFull
from lasthop.wire.hop.frames import MessageFrame


def test_the_applications_tables_commit_with_the_message(tmp_path: Path) -> None:
    path = tmp_path / "inbox.db"
    inbox = SqliteInbox(path)
    with inbox.transaction() as transaction:
        transaction.execute("CREATE TABLE mine (n INTEGER)")
        transaction.executemany("INSERT INTO mine VALUES (?)", [(1,), (2,)])
    with suppress(ZeroDivisionError), inbox.transaction() as transaction:
        transaction.execute("INSERT INTO mine VALUES (3)")
        raise ZeroDivisionError
    inbox.close()
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT n FROM mine").fetchall() == [(1,), (2,)]
    database.close()


def test_an_error_of_the_application_is_its_own(tmp_path: Path) -> None:
    inbox = SqliteInbox(tmp_path / "inbox.db")
    with pytest.raises(sqlite3.OperationalError), inbox.transaction() as transaction:
        transaction.execute("SELECT * FROM nowhere")
    inbox.apply(Change(n=1, state=SessionNumbers(received=1)))
    inbox.close()


def test_a_full_disk_is_told_apart_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    inbox = SqliteInbox(tmp_path / "inbox.db")
    (pages,) = inbox._database.execute("PRAGMA page_count").fetchone()
    inbox._database.execute(f"PRAGMA max_page_count = {pages + 2}")
    large = InboxRow(0, 0, MessageFrame(None, 1, None, None, bytes(100_000)))
    with pytest.raises(StoreFull, match=r"^there is no room on the disk for the inbox$"):
        inbox.apply(Change(n=1, state=SessionNumbers(received=1), stored=[large]))
    assert inbox.load().state.received == 0
    inbox.apply(Change(n=1, state=SessionNumbers(received=2)))
    assert inbox.load().state.received == 2
    inbox.close()


def test_an_inbox_belongs_to_one_process(tmp_path: Path) -> None:
    inbox = SqliteInbox(tmp_path / "inbox.db")
    with pytest.raises(StoreBroken, match="another process uses this inbox"):
        SqliteInbox(tmp_path / "inbox.db")
    inbox.close()
    SqliteInbox(tmp_path / "inbox.db").close()


def test_an_inbox_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    SqliteInbox(tmp_path / "inbox.db").close()
    database = sqlite3.connect(tmp_path / "inbox.db")
    database.execute("UPDATE lasthop_session SET version = 6")
    database.commit()
    database.close()
    with pytest.raises(StoreBroken, match=r"written by a newer version \(version=6\)"):
        SqliteInbox(tmp_path / "inbox.db")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inbox.db").write_bytes(b"not a database, but long enough to be read as one" * 50)
    with pytest.raises(StoreBroken, match="the inbox cannot be used"):
        SqliteInbox(tmp_path / "inbox.db")


def test_what_the_fourth_version_kept_is_in_lane_0(tmp_path: Path) -> None:
    SqliteInbox(tmp_path / "inbox.db").close()
    database = sqlite3.connect(tmp_path / "inbox.db")
    database.executescript(
        "DROP TABLE lasthop_lane; DROP TABLE lasthop_inbox;"
        "ALTER TABLE lasthop_outbox DROP COLUMN lane;"
        "CREATE TABLE lasthop_inbox (position INTEGER PRIMARY KEY, number INTEGER,"
        " default_type TEXT, frame BLOB NOT NULL);"
        "UPDATE lasthop_session SET version = 4"
    )
    frames = [MessageFrame(None, key, None, None, b"body") for key in (1, 2, 3)]
    rows = [(9, 4, "text/x", pack(frames[0])), (7, None, None, pack(frames[1]))]
    database.executemany("INSERT INTO lasthop_inbox VALUES (?, ?, ?, ?)", rows)
    database.execute("INSERT INTO lasthop_outbox VALUES (3, 5, ?)", (pack(frames[2]),))
    database.commit()
    database.close()
    for _ in range(2):
        inbox = SqliteInbox(tmp_path / "inbox.db")
        held = inbox.load()
        inbox.close()
        assert held.inbox == [InboxRow(7, None, frames[1]), InboxRow(9, 4, frames[0], "text/x")]
        assert held.outbox == [OutboxRow(5, frames[2])]
        assert held.lanes == []


def test_a_place_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreBroken, match="the inbox cannot be opened"):
        SqliteInbox(tmp_path / "nowhere" / "inbox.db")


@pytest.mark.parametrize(
    "column, message",
    [
        ("UPDATE lasthop_session SET state = X'c1'", "the state in the inbox cannot be read"),
        (
            "INSERT INTO lasthop_inbox VALUES (0, 1, 0, 1, NULL, X'c1')",
            "a message in the inbox cannot be read",
        ),
    ],
)
def test_damage_is_noticed(tmp_path: Path, column: str, message: str) -> None:
    inbox = SqliteInbox(tmp_path / "inbox.db")
    inbox._database.execute(column)
    with pytest.raises(StoreBroken, match=message):
        inbox.load()
    inbox.close()


@pytest.mark.parametrize("power_safe, level", [(True, 2), (False, 1)])
def test_commits_are_synchronous_unless_told_otherwise(
    tmp_path: Path, power_safe: bool, level: int
) -> None:
    inbox = SqliteInbox(tmp_path / "inbox.db", power_safe=power_safe)
    assert inbox._database.execute("PRAGMA synchronous").fetchone() == (level,)
    assert inbox._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    inbox.close()


HANDLER = """
    import sys
    from lasthop.device.change import Change, InboxRow, SessionNumbers
    from lasthop.device.inbox_sqlite import SqliteInbox
    from lasthop.wire.hop.frames import MessageFrame

    inbox = SqliteInbox(sys.argv[1])
    state = inbox.load().state
    with inbox.transaction() as transaction:
        transaction.execute("CREATE TABLE IF NOT EXISTS mine (n INTEGER)")
    number = state.received
    while True:
        with inbox.transaction() as transaction:
            for _ in range(7):
                transaction.execute("INSERT INTO mine VALUES (?)", (number,))
                number += 1
            transaction.apply(Change(n=1, state=SessionNumbers(received=number, delivered=number)))
        print(number, flush=True)
"""


def test_kill_9_leaves_the_applications_work_and_the_state_in_step(tmp_path: Path) -> None:
    path = tmp_path / "inbox.db"
    confirmed = 0
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(HANDLER), str(path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(5):
            confirmed = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        inbox = SqliteInbox(path)
        received = inbox.load().state.received
        with inbox.transaction() as transaction:
            numbers = [n for (n,) in transaction.execute("SELECT n FROM mine ORDER BY n")]
        inbox.close()
        assert received >= confirmed
        assert numbers == list(range(received))


def test_a_savepoint_is_made_by_the_first_change_alone(tmp_path: Path) -> None:
    inbox = SqliteInbox(tmp_path / "inbox.db")
    said: list[str] = []

    def savepoints() -> list[str]:
        found = [sql.removesuffix(" lasthop") for sql in said if sql.endswith(" lasthop")]
        said.clear()
        return found

    with inbox.transaction() as transaction:
        transaction.execute("CREATE TABLE mine (n INTEGER)")
        inbox._database.set_trace_callback(said.append)
        with transaction.attempt():
            assert transaction.get("note") is None
        with suppress(ZeroDivisionError), transaction.attempt():
            raise ZeroDivisionError
        assert savepoints() == []
        changes: list[Callable[[], object]] = [
            lambda: transaction.execute("INSERT INTO mine VALUES (1)"),
            lambda: transaction.executemany("INSERT INTO mine VALUES (?)", [(2,), (3,)]),
            lambda: transaction.put("note", b"4"),
        ]
        for change in changes:
            with suppress(ZeroDivisionError), transaction.attempt():
                change()
                change()
                raise ZeroDivisionError
            assert savepoints() == ["SAVEPOINT", "ROLLBACK TO", "RELEASE"]
            with transaction.attempt():
                change()
            assert savepoints() == ["SAVEPOINT", "RELEASE"]
        # Outside of an attempt a change belongs to the transaction.
        transaction.execute("INSERT INTO mine VALUES (5)")
        assert savepoints() == []
    with inbox.transaction() as transaction:
        kept = transaction.execute("SELECT n FROM mine ORDER BY n").fetchall()
        assert (kept, transaction.get("note")) == ([(1,), (2,), (3,), (5,)], b"4")
    inbox.close()
