"""What `lasthop store check` says of a store that is sound, and of what power losses, bad disks and
people do to one."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from lasthop.clock import SECOND
from lasthop.errors import StoreBroken
from lasthop.eventlog.exporter import Exporter
from lasthop.events import Event, Kind
from lasthop.runtime.cli import app
from lasthop.runtime.store_check import check_store
from lasthop.store.sqlite.connection import FILE_NAME, connect
from lasthop.store.sqlite.faults import LOG_NAME, copy_after_crash, log_frames
from lasthop.store.sqlite.store import SqliteStore
from tests.store.making import START, Maker, delivery

COMMITS = 12
BODY = b"the body of message number %d, which stands in the file as it is"


def line(offset: int, message: int, kind: Kind = Kind.ACCEPTED) -> bytes:
    event = Event(1, "gw", 1, offset, START + offset, kind, app="app", msg=message)
    return msgspec.json.encode(event) + b"\n"


class Written:
    """A data directory whose store was never closed, with its log of events, and how long SQLite's
    log was after each commit."""

    def __init__(self, data: Path, *, exported: int = COMMITS) -> None:
        self.data = data
        self.store = SqliteStore(data)
        self.store.open()
        self.lengths = []
        maker = Maker()
        for n in range(COMMITS):
            message = maker.message(BODY % n)
            commit = maker.commit([message], [delivery(message)], events=2)
            first = maker.next_event - 2
            commit.events[:] = line(first, message.key) + line(
                first + 1, message.key, Kind.DELIVERED
            )
            self.store.apply(commit)
            self.lengths.append(log_frames(data)[-1].end)
            if n + 1 == exported:
                exporter = Exporter(data / "log", self.store, confirm=lambda until: None)
                exporter.finish(START + 100 * SECOND)

    def crashed(self, into: Path, *, keep_bytes: int | None = None) -> Path:
        """What is left after a crash, with the files of the event log."""
        copy_after_crash(self.data, into, keep_bytes=keep_bytes)
        shutil.copytree(self.data / "log", into / "log")
        return into


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "data")


def said(data: Path, *, exit_code: int) -> str:
    result = CliRunner().invoke(app, ["store", "check", "--data", str(data)])
    assert result.exit_code == exit_code, result.output
    return result.output


def test_a_sound_store_is_called_sound(written: Written) -> None:
    told = said(written.data, exit_code=0)
    assert told == "12 commits, 24 events, 24 pages checked: the store is sound\n"
    written.store.exported(24)
    written.store.close()
    assert said(written.data, exit_code=0) == told
    result = CliRunner().invoke(app, ["store", "check", "--data", str(written.data), "--json"])
    assert json.loads(result.output) == {
        "sound": True,
        "cut_off": False,
        "commits": 12,
        "events": 24,
        "log_events": 24,
        "checked": 24,
        "unchecked": 0,
        "problems": [],
        "notes": [],
    }


@pytest.mark.parametrize("kept", [2, 7, 11])
@pytest.mark.parametrize("inside", [0, 100])
def test_commits_that_were_cut_off_are_told_loudly_and_whom_they_concern(
    written: Written, tmp_path: Path, kept: int, inside: int
) -> None:
    data = written.crashed(tmp_path / "crashed", keep_bytes=written.lengths[kept - 1] + inside)
    lines = said(data, exit_code=1).splitlines()
    gone = COMMITS - kept
    told = "\n".join(lines)
    assert lines[0] == "COMMITS ARE GONE: what others were told is not in the store any more."
    assert (
        f"\nthe last commits were cut off: the store ends before event {2 * kept}, the event log"
        " has events up to 23\n"
    ) in told
    assert (
        f"\npublishers: messages that had been answered as accepted are gone ({gone} that the event"
        " log has). Publish them again; with the same idempotency keys nothing is doubled.\n"
    ) in told
    assert (
        f"\ndevices: those that had acknowledged what is gone ({gone} acknowledgements that the"
        " event log has) claim more than the gateway knows. They get a new numbering, and recognise"
        " by its id what they have had already: nothing comes twice.\n"
    ) in told
    assert (
        "\ndevices that sent: what the gateway had acknowledged and does not have any more is lost,"
        " since it is no longer in their outbox.\n"
    ) in told
    if inside:
        assert lines[5] == "100 bytes of a commit that was not finished: nobody was told of it"
    assert lines[-1].endswith("the store is DAMAGED")


def test_an_unfinished_commit_harms_nobody(tmp_path: Path) -> None:
    written = Written(tmp_path / "data", exported=5)
    data = written.crashed(tmp_path / "crashed", keep_bytes=written.lengths[9] + 5000)
    assert said(data, exit_code=0).splitlines() == [
        "5000 bytes of a commit that was not finished: nobody was told of it",
        "10 commits, 20 events, 20 pages checked: the store is sound",
    ]


def test_commits_behind_a_damaged_place_of_the_log_are_counted(tmp_path: Path) -> None:
    written = Written(tmp_path / "data", exported=5)
    data = written.crashed(tmp_path / "crashed")
    log = bytearray((data / LOG_NAME).read_bytes())
    log[written.lengths[7] + 1000] ^= 1
    (data / LOG_NAME).write_bytes(log)
    report = check_store(data)
    assert report.cut_off
    assert report.problems[0] == (
        "the store's log is damaged: 4 commits behind the damage were written and are gone"
    )
    assert report.problems[1].startswith("publishers: messages that had been answered as accepted")
    assert report.files.next_commit == 9


def test_a_body_that_changed_in_the_file_is_found(written: Written) -> None:
    written.store.close()
    path = written.data / FILE_NAME
    content = path.read_bytes()
    assert content.count(BODY % 3) == 1
    path.write_bytes(content.replace(BODY % 3, (BODY % 3).upper()))
    with closing(connect(path, mode="ro")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        pages = connection.execute("SELECT first FROM page ORDER BY first").fetchall()
    text = f"the messages from {pages[3][0]:016x} on have changed since they were written"
    assert check_store(written.data).problems == [text]
    with pytest.raises(StoreBroken, match=f"{text}; `lasthop store check` tells more"):
        SqliteStore(written.data)


def test_events_that_changed_in_the_file_are_found(written: Written) -> None:
    written.store.close()
    with closing(connect(written.data / FILE_NAME, mode="rw")) as connection:
        connection.execute("UPDATE event_page SET lines = lines || x'00' WHERE first >= 6")
        connection.execute("DELETE FROM event_page WHERE first IN (2, 22)")
    assert check_store(written.data).problems == [
        "the events from 2 to 3 are missing",
        *(
            f"the events from {first} on have changed since they were written"
            for first in (6, 8, 10, 12, 14)
        ),
        "and 3 more pages like that",
        "the store counts 24 events, and the last that it has is 21",
    ]


def test_a_damaged_tree_is_found(written: Written) -> None:
    written.store.close()
    path = written.data / FILE_NAME
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // 8192):
        content[page * 8192 + 3 : page * 8192 + 8] = b"\xff" * 5
    path.write_bytes(content)
    problems = check_store(written.data).problems
    assert any(
        text.startswith(("SQLite: ", "the store's file cannot be read: ")) for text in problems
    )


def test_files_of_the_event_log_that_are_gone_are_missed(written: Written) -> None:
    written.store.exported(24)
    shutil.rmtree(written.data / "log")
    assert said(written.data, exit_code=1).splitlines()[0] == (
        "the event log is cut off: events 0 to 23 were exported, and their files are gone;"
        " deliveries are not affected, explanations and the pipeline lack them"
    )


def test_what_was_written_before_checksums_is_noted(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path)) as store:
        store.open()
        store.apply(Maker().accepted(b"hello"))
    with closing(connect(tmp_path / FILE_NAME, mode="rw")) as connection:
        connection.execute("UPDATE page SET crc = NULL")
        connection.execute("UPDATE event_page SET crc = NULL")
    assert said(tmp_path, exit_code=0).splitlines() == [
        "2 pages were written before there were checksums, and have none",
        "1 commits, 1 events, 0 pages checked: the store is sound",
    ]


def test_a_store_of_an_older_version_can_be_checked(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path)):
        pass
    # Version 8 had no checksums.
    with closing(connect(tmp_path / FILE_NAME, mode="rw")) as connection:
        connection.execute("ALTER TABLE page DROP COLUMN crc")
        connection.execute("ALTER TABLE event_page DROP COLUMN crc")
        connection.execute("PRAGMA user_version = 8")
    assert check_store(tmp_path).sound


def test_no_store_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreBroken, match="there is no store in this directory"):
        check_store(tmp_path)
