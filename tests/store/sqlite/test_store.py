"""What is particular to the embedded store: files, versions, locks, limits."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from lasthop.errors import StoreBroken, StoreError, StoreFull
from lasthop.store.base import Durability
from lasthop.store.commit import Commit, OpenMessage
from lasthop.store.sqlite import SqliteReader, SqliteStore, pages, restore
from lasthop.store.sqlite.connection import FILE_NAME, store_errors
from lasthop.store.sqlite.migrations import MIGRATIONS, Migration
from tests.store.making import DELIVERED, FAR_FUTURE, Maker, delivery, device, session

NEXT = Migration(MIGRATIONS[-1].to + 1, ("ALTER TABLE device ADD COLUMN owner TEXT DEFAULT 'x'",))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def store(data: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(data)) as store:
        store.open()
        yield store


def bytes_on_disk(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(directory.iterdir()))


class TestLocking:
    def test_a_second_gateway_is_kept_out(self, store: SqliteStore, data: Path) -> None:
        with pytest.raises(StoreError) as refused:
            SqliteStore(data)
        assert str(refused.value) == (
            "another gateway is using this data directory"
            f" (directory={str(data)!r}, pid='{os.getpid()}')"
        )
        store.apply(Maker().commit())

    def test_a_closed_store_lets_the_next_gateway_in(self, data: Path) -> None:
        for _ in range(2):
            SqliteStore(data).close()

    def test_a_store_that_cannot_be_opened_is_let_go(self, data: Path) -> None:
        data.mkdir()
        (data / FILE_NAME).write_bytes(b"not a database, but long enough to look like one" * 100)
        for _ in range(2):
            with pytest.raises(StoreBroken) as refused:
                SqliteStore(data)
            message = "the store's file is damaged (sqlite='SQLITE_NOTADB')"
            assert str(refused.value) == message

    def test_a_file_that_somebody_else_writes_is_reported_as_locked(
        self, store: SqliteStore, data: Path
    ) -> None:
        store._connection.execute("PRAGMA busy_timeout = 1")
        make = Maker()
        commit = make.accepted(b"a")
        with closing(sqlite3.connect(data / FILE_NAME, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError) as refused:
                store.apply(commit)
        assert str(refused.value) == (
            "another program holds the store's file locked (sqlite='SQLITE_BUSY')"
        )
        store.apply(commit)


class TestVersions:
    def test_an_older_store_is_brought_up_to_date(self, data: Path) -> None:
        make = Maker()
        with closing(SqliteStore(data)) as store:
            store.open()
            store.apply(make.commit(devices=[device(1)]))
        with closing(SqliteStore(data, migrations=[*MIGRATIONS, NEXT])) as store:
            restored = store.open()
            assert (restored.boot, list(restored.devices)) == (2, [device(1)])
            assert store._all("SELECT owner FROM device") == [("x",)]
            store.apply(make.commit(devices=[device(2)]))

    def test_what_devices_could_do_is_written_down_as_a_rule(self, data: Path) -> None:
        before = [step for step in MIGRATIONS if step.to < 9]
        with closing(SqliteStore(data, migrations=before)) as store:
            store._connection.execute("UPDATE meta SET boot = 1")
        with closing(SqliteStore(data)) as store:
            (row,) = store.open().memories
            assert row.name == "rule:*/upgraded"
            assert msgspec.json.decode(row.state)["who"] == ["device:*"]

    def test_a_new_store_allows_devices_nothing_by_itself(self, data: Path) -> None:
        for _ in range(2):
            with closing(SqliteStore(data)) as store:
                assert list(store.open().memories) == []

    def test_a_failed_step_leaves_the_store_as_it_was(self, data: Path) -> None:
        with closing(SqliteStore(data)) as store:
            store.open()
        wrong = NEXT._replace(statements=(*NEXT.statements, "no such statement"))
        with pytest.raises(StoreBroken) as refused:
            SqliteStore(data, migrations=[*MIGRATIONS, wrong])
        assert str(refused.value) == (
            "the store failed (sqlite='SQLITE_ERROR', cause='near \"no\": syntax error')"
        )
        with closing(SqliteStore(data)) as store:
            assert store.open().boot == 2

    @pytest.mark.parametrize("opened", [SqliteStore, SqliteReader.beside])
    def test_a_newer_store_is_refused(self, data: Path, opened: type[SqliteStore]) -> None:
        SqliteStore(data, migrations=[*MIGRATIONS, NEXT]).close()
        with pytest.raises(StoreBroken) as refused:
            opened(data)
        assert str(refused.value) == (
            "the store was written by a newer lasthop; upgrade, or restore an older backup"
            f" (store_version={NEXT.to}, newest_known={NEXT.to - 1})"
        )

    def test_another_programs_database_is_refused_and_left_alone(self, data: Path) -> None:
        data.mkdir()
        with closing(sqlite3.connect(data / FILE_NAME)) as other:
            other.execute("PRAGMA application_id = 5")
            other.execute("CREATE TABLE theirs (x)")
        before = (data / FILE_NAME).read_bytes()
        with pytest.raises(StoreBroken) as refused:
            SqliteStore(data)
        assert str(refused.value) == "this file is not a lasthop store (application_id=5)"
        assert (data / FILE_NAME).read_bytes() == before

    def test_an_old_sqlite_is_refused(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))
        monkeypatch.setattr(sqlite3, "sqlite_version", "3.37.2")
        with pytest.raises(StoreBroken) as refused:
            SqliteStore(data)
        assert str(refused.value) == "SQLite is too old (found='3.37.2', needed='3.38.0')"

    def test_steps_are_numbered_from_one_without_gaps(self) -> None:
        assert [step.to for step in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


class TestReadingBeside:
    def test_works_with_and_without_a_gateway(self, store: SqliteStore, data: Path) -> None:
        make = Maker()
        store.apply(make.accepted(b"a"))
        with closing(SqliteReader.beside(data)) as reader:
            store.apply(make.accepted(b"b"))
            assert reader.counts().messages == 2
        store.close()
        with closing(SqliteReader.beside(data)) as reader:
            assert reader.counts().messages == 2

    def test_cannot_write(self, store: SqliteStore, data: Path) -> None:
        with (
            closing(SqliteReader.beside(data)) as reader,
            pytest.raises(sqlite3.OperationalError, match="readonly"),
        ):
            reader._connection.execute("DELETE FROM meta")

    def test_needs_a_store(self, tmp_path: Path) -> None:
        with pytest.raises(StoreBroken) as refused:
            SqliteReader.beside(tmp_path)
        assert str(refused.value) == (
            f"there is no store in this directory (directory={str(tmp_path)!r})"
        )

    def test_an_open_delivery_without_its_message_is_noticed(self, store: SqliteStore) -> None:
        store.apply(Maker().commit([], [delivery(5)]))
        with pytest.raises(StoreBroken) as refused:
            list(store.open().open)
        assert str(refused.value) == "an open delivery has no message (message=5)"

    def test_many_open_messages_come_back_in_order(self, store: SqliteStore) -> None:
        make = Maker()
        kept: list[OpenMessage] = []
        for _ in range(5):
            messages = make.messages(2_000)
            store.apply(make.commit(messages, [delivery(message) for message in messages]))
            kept += [OpenMessage(message, [delivery(message)]) for message in messages]
        assert list(store.open().open) == kept


class TestBackups:
    def test_a_backup_comes_back_as_a_new_incarnation(
        self, store: SqliteStore, data: Path, tmp_path: Path
    ) -> None:
        make = Maker()
        first = make.accepted(b"before")
        store.apply(first)
        with closing(store.reader()) as reader:
            reader.backup(tmp_path / "copy")
        store.apply(make.accepted(b"after"))
        incarnation = restore(tmp_path / "copy", tmp_path / "elsewhere")
        with closing(SqliteStore(tmp_path / "elsewhere")) as restored_store:
            restored = restored_store.open()
            assert restored.incarnation == incarnation != store.open().incarnation
            assert (restored.next_commit, restored.boot) == (2, 2)
            assert [row.message for row in restored.open] == first.messages
        assert sorted(file.name for file in tmp_path.iterdir()) == ["copy", "data", "elsewhere"]

    def test_a_backup_overwrites_nothing(self, store: SqliteStore, tmp_path: Path) -> None:
        path = tmp_path / "copy"
        path.write_text("precious")
        with pytest.raises(StoreBroken) as refused:
            store.backup(path)
        assert str(refused.value) == f"the backup's file exists already (path={str(path)!r})"
        assert path.read_text() == "precious"

    def test_restoring_overwrites_nothing(
        self, store: SqliteStore, data: Path, tmp_path: Path
    ) -> None:
        store.backup(tmp_path / "copy")
        with pytest.raises(StoreBroken) as refused:
            restore(tmp_path / "copy", data)
        assert str(refused.value) == (
            f"there is a store in this directory already (directory={str(data)!r})"
        )

    def test_a_missing_backup_is_reported(self, tmp_path: Path) -> None:
        with pytest.raises(StoreBroken) as refused:
            restore(tmp_path / "copy", tmp_path / "data")
        assert str(refused.value) == f"there is no such backup (path={str(tmp_path / 'copy')!r})"

    def test_a_damaged_backup_leaves_nothing_behind(
        self, store: SqliteStore, tmp_path: Path
    ) -> None:
        copy = tmp_path / "copy"
        for content in (b"", b"rubbish" * 1000):
            copy.write_bytes(content)
            with pytest.raises(StoreBroken, match="damaged"):
                restore(copy, tmp_path / "elsewhere")
            assert list((tmp_path / "elsewhere").iterdir()) == []


class TestErasing:
    def test_no_file_holds_the_body_afterwards(self, store: SqliteStore, data: Path) -> None:
        make = Maker()
        secrets = [b"<<secret-%04d>>" % i for i in range(300)]
        for some in (secrets[:100], secrets[100:200], secrets[200:]):
            mine = [make.message(body * 20) for body in some]
            others = [make.message(b"harmless" * 100) for _ in some]
            store.apply(
                make.commit(
                    [*mine, *others],
                    [delivery(message, 1, DELIVERED) for message in mine]
                    + [delivery(message, 2) for message in others],
                    devices=[device(1), device(2)],
                    sessions=[session(1), session(2)],
                )
            )
        assert b"<<secret-" in bytes_on_disk(data)
        erased = store.erase_device(1)
        assert (erased.messages, erased.next) == (300, None)
        left = bytes_on_disk(data)
        assert b"<<secret-" not in left
        assert b"harmless" in left
        assert store.counts().messages == 300

    def test_what_was_retired_before_is_not_found_either(
        self, store: SqliteStore, data: Path
    ) -> None:
        make = Maker()
        retired, erased = make.message(b"<<secret>>" * 50), make.message(b"<<secret>>" * 50)
        rows = [delivery(retired, 1, DELIVERED), delivery(erased, 1)]
        store.apply(make.commit([retired, erased], rows))
        assert store.retire(messages_before=FAR_FUTURE, keys_before=0).messages == 1
        store.erase_device(1)
        assert b"<<secret>>" not in bytes_on_disk(data)

    def test_a_reader_delays_the_end_until_it_is_done(self, store: SqliteStore, data: Path) -> None:
        store._connection.execute("PRAGMA busy_timeout = 1")
        store.apply(Maker().accepted(b"<<secret>>", b"<<secret>>"))
        rows = store.all_deliveries()
        next(rows)
        store.erase_device(1)
        assert b"<<secret>>" in bytes_on_disk(data)
        assert len(list(rows)) == 1
        store.retire(messages_before=0, keys_before=0)
        assert b"<<secret>>" not in bytes_on_disk(data)

    def test_goes_on_in_steps_past_a_message_with_very_many_deliveries(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lasthop.store.sqlite.forgetting.ROWS_PER_STEP", 3)
        make = Maker()
        messages = make.messages(4)
        rows = [delivery(message, number) for message in messages[:3] for number in range(1, 9)]
        store.apply(make.commit(messages, [*rows, delivery(messages[3], 1)]))
        start: int | None = 0
        erased, steps = 0, 0
        while start is not None:
            step = store.erase_device(1, start=start)
            start, erased, steps = step.next, erased + step.deliveries, steps + 1
        assert (erased, steps) == (4, 4)
        assert store.messages([messages[3].key]) == {}


class TestRoom:
    def test_a_full_store_refuses_a_commit_and_works_again_when_there_is_room(
        self, store: SqliteStore
    ) -> None:
        make = Maker()
        store.apply(make.accepted(b"first"))
        used = store._all("PRAGMA page_count")[0][0]
        store._connection.execute(f"PRAGMA max_page_count = {used + 2}")
        large = make.accepted(b"x" * 100_000)
        for _ in range(3):
            with pytest.raises(StoreFull) as refused:
                store.apply(large)
            assert str(refused.value) == "no room left for the store (sqlite='SQLITE_FULL')"
        assert store.counts().messages == 1
        assert len(list(store.all_deliveries())) == 1
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store.apply(large)
        assert store.counts().messages == 2

    def test_a_full_store_refuses_a_group_as_a_whole(self, store: SqliteStore) -> None:
        make = Maker()
        first = make.accepted(b"small")
        gone = make.commit(removed_devices=[1])  # ends a run, so that there are two statements
        large = make.accepted(b"x" * 100_000)
        used = store._all("PRAGMA page_count")[0][0]
        store._connection.execute(f"PRAGMA max_page_count = {used + 2}")
        with pytest.raises(StoreFull):
            store.apply(first, gone, large)
        assert store.counts().messages == 0
        store.apply(first, gone)
        assert store.counts().messages == 1

    @pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
    def test_a_full_disk_loses_nothing(self, tmp_path: Path) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            pytest.skip("mounting is not allowed here")
        try:
            fill_and_free(disk)
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    def test_an_io_error_breaks_the_store(self, data: Path) -> None:
        # Beyond the limit a write fails with EFBIG, which is as unexpected as EIO.
        outcome = subprocess.run(
            [sys.executable, "-c", WRITE_TOO_MUCH, str(data)],
            check=True,
            capture_output=True,
            text=True,
        )
        assert outcome.stdout == (
            "the store failed (sqlite='SQLITE_IOERR_WRITE', cause='disk I/O error')\n"
        )
        with closing(SqliteStore(data)) as store:
            assert store.open().next_commit == 2

    def test_an_unknown_complaint_breaks_the_store(self) -> None:
        with pytest.raises(StoreBroken) as refused, store_errors():
            raise sqlite3.OperationalError(os.strerror(errno.EIO))
        assert str(refused.value) == (
            "the store failed (sqlite='OperationalError', cause='Input/output error')"
        )


WRITE_TOO_MUCH = """
import resource, signal, sys
from pathlib import Path
from lasthop.errors import StoreBroken
from lasthop.store.sqlite import SqliteStore
from tests.store.making import Maker

store = SqliteStore(Path(sys.argv[1]))
store.open()
make = Maker()
store.apply(make.accepted(b"small"))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
try:
    store.apply(make.accepted(b"x" * (2 << 20)))
except StoreBroken as error:
    print(error)
"""


def fill_and_free(disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * 1_000_000)
    make = Maker()
    commits = [make.accepted(b"y" * 10_000) for _ in range(200)]
    with closing(SqliteStore(disk / "data")) as store:
        store.open()
        with pytest.raises(StoreFull, match="no room left for the store"):
            apply_each(store, commits)
        kept = store.counts().messages
        assert 0 < kept < len(commits)
        ballast.unlink()
        store.apply(commits[kept])
    with closing(SqliteStore(disk / "data")) as store:
        assert store.open().next_commit == kept + 2
        assert store.counts().messages == kept + 1


def apply_each(store: SqliteStore, commits: list[Commit]) -> None:
    for commit in commits:
        store.apply(commit)


class TestSettings:
    @pytest.mark.parametrize(
        "durability, synchronous", [(Durability.FULL, 2), (Durability.RELAXED, 0)]
    )
    def test_durability_is_what_was_asked_for(
        self, data: Path, durability: Durability, synchronous: int
    ) -> None:
        with closing(SqliteStore(data, durability=durability)) as store:
            store.open()
            store.apply(Maker().accepted(b"a"))
            assert store._all("PRAGMA synchronous") == [(synchronous,)]
            assert store._all("PRAGMA journal_mode") == [("wal",)]

    def test_a_large_commit_is_cut_into_pages(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pages, "PAGE_BYTES", 10_000)
        make = Maker()
        messages = [make.message(bytes([i]) * 1_000) for i in range(100)]
        store.apply(make.commit(messages))
        assert store._all("SELECT count(*) FROM page")[0][0] == pytest.approx(12, abs=2)
        assert list(store.messages(m.key for m in messages).values()) == messages
        assert store.messages([messages[50].key]) == {messages[50].key: messages[50]}
