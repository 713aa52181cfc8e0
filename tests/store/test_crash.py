"""A crash at any instant leaves exactly what some number of whole commits had written.

About `store/sqlite/writing.py` and `store/sqlite/faults.py`.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from pathlib import Path

import pytest

from lasthop.errors import StoreBroken, StoreFull
from lasthop.store.commit import Commit, DeliveryRow, ReplyRow
from lasthop.store.memory import MemoryStore
from lasthop.store.sqlite import SqliteStore
from lasthop.store.sqlite.faults import (
    LOG_NAME,
    copy_after_crash,
    cut_log,
    log_frames,
    tear_log,
)
from tests.store.making import (
    DELIVERED,
    Maker,
    credential,
    delivery,
    device,
    event_line,
    key,
    session,
)
from tests.store.model import Model


def mixed_commits(number: int) -> list[Commit]:
    """Commits of all kinds of rows, some larger than a page of the file."""
    make = Maker()
    commits: list[Commit] = []
    open_rows: list[DeliveryRow] = []
    for i in range(number):
        messages = [make.message(b"body %d " % i * (1 + i * 97 % 500)) for _ in range(1 + i % 4)]
        finished = [delivery(row.message, state=DELIVERED) for row in open_rows[::2]]
        open_rows = [delivery(message) for message in messages]
        commits.append(
            make.commit(
                messages,
                [*open_rows, *finished],
                sessions=[session(1, epoch=i)],
                devices=[device(i + 1)],
                removed_devices=[i - 5],
                keys=[key(f"key-{i}")],
                replies=[ReplyRow(row.message, 1, i + 1) for row in finished],
                credentials=[credential(i % 256)],
                events=i % 5,
            )
        )
    return commits


class Recorded:
    """A store that was written commit by commit, and how long its log was after each."""

    def __init__(self, directory: Path, commits: list[Commit]) -> None:
        self.directory = directory
        self.models = [Model()]
        self.lengths: list[int] = []
        self.store = SqliteStore(directory)
        self.store.open()
        self.lengths.append(log_frames(directory)[-1].end)
        for commit in commits:
            self.store.apply(commit)
            model = deepcopy(self.models[-1])
            model.apply(commit)
            self.models.append(model)
            self.lengths.append(log_frames(directory)[-1].end)

    def check_crash(self, into: Path, keep_bytes: int) -> None:
        """Cut the log, open what is left, and find all that was confirmed by then."""
        copy_after_crash(self.directory, into, keep_bytes=keep_bytes)
        self.check_survivor(into, at_least=max(0, bisect_right(self.lengths, keep_bytes) - 1))

    def check_survivor(self, directory: Path, *, at_least: int) -> None:
        with closing(SqliteStore(directory)) as survivor:
            restored = survivor.open()
            kept = restored.next_commit - 1
            assert kept == at_least
            self.models[kept].check_restored(restored)
            self.models[kept].check(survivor)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    recorded = Recorded(tmp_path_factory.mktemp("recorded") / "data", mixed_commits(20))
    yield recorded
    recorded.store.close()


def test_a_log_cut_after_any_frame_leaves_whole_commits(recorded: Recorded, tmp_path: Path) -> None:
    frames = log_frames(recorded.directory)
    assert [frame.end for frame in frames if frame.commits][-21:] == recorded.lengths
    for frame in frames:
        if frame.end >= recorded.lengths[0]:
            recorded.check_crash(tmp_path / str(frame.end), frame.end)


def test_a_log_cut_at_any_byte_leaves_whole_commits(recorded: Recorded, tmp_path: Path) -> None:
    chance = random.Random(1)
    ends = [length + d for length in recorded.lengths for d in (-1, 1)]
    inside = [chance.randrange(recorded.lengths[0], recorded.lengths[-1]) for _ in range(60)]
    for keep in sorted({*ends[1:], *inside}):
        recorded.check_crash(tmp_path / str(keep), keep)


def test_a_torn_end_of_the_log_is_not_taken_for_a_commit(
    recorded: Recorded, tmp_path: Path
) -> None:
    chance = random.Random(2)
    for i in range(40):
        at = chance.randrange(recorded.lengths[0], recorded.lengths[-1] - 512)
        into = tmp_path / str(i)
        copy_after_crash(recorded.directory, into)
        tear_log(into, at=at, garbage=chance.randbytes(512))
        recorded.check_survivor(into, at_least=bisect_right(recorded.lengths, at) - 1)


def test_without_its_log_a_store_is_what_it_was_when_last_carried_over(
    tmp_path: Path,
) -> None:
    commits = mixed_commits(6)
    with closing(SqliteStore(tmp_path / "data")) as store:
        store.open()
        store.apply(*commits[:3])
    recorded = tmp_path / "data"
    with closing(SqliteStore(recorded)) as store:
        store.open()
        store.apply(*commits[3:])
        copy_after_crash(recorded, tmp_path / "crashed", keep_bytes=0)
    with closing(SqliteStore(tmp_path / "crashed")) as survivor:
        assert survivor.open().next_commit == 4


def test_a_store_goes_on_after_a_crash(recorded: Recorded, tmp_path: Path) -> None:
    copy_after_crash(recorded.directory, tmp_path / "data", keep_bytes=recorded.lengths[10] + 100)
    model = deepcopy(recorded.models[10])
    with closing(SqliteStore(tmp_path / "data")) as survivor:
        restored = survivor.open()
        make = Maker(
            after=restored.last_key,
            next_commit=restored.next_commit,
            next_event=restored.next_event,
        )
        for _ in range(5):
            commit = make.accepted(b"again", b"and again")
            survivor.apply(commit)
            model.apply(commit)
        model.check(survivor)


def test_a_log_that_was_started_over_is_told_from_its_remains(tmp_path: Path) -> None:
    make = Maker()
    with closing(SqliteStore(tmp_path)) as store:
        store.open()
        store.apply(make.accepted(b"x" * 100_000))
        store._connection.execute("PRAGMA wal_checkpoint(RESTART)")
        store.apply(make.accepted(b"y"))
        frames = log_frames(tmp_path)
        assert frames[-1].commits
        assert frames[-1].end < (tmp_path / LOG_NAME).stat().st_size
        copy_after_crash(tmp_path, tmp_path / "copy", keep_bytes=frames[-1].end - 1)
    with closing(SqliteStore(tmp_path / "copy")) as survivor:
        assert survivor.open().next_commit == 2


def test_an_empty_log_has_no_frames(tmp_path: Path) -> None:
    (tmp_path / LOG_NAME).write_bytes(b"")
    assert log_frames(tmp_path) == []
    cut_log(tmp_path, keep_bytes=None)


WRITE_UNTIL_KILLED = """
import sys
from pathlib import Path
from lasthop.store.sqlite import SqliteStore
from tests.store.making import Maker

store = SqliteStore(Path(sys.argv[1]))
restored = store.open()
make = Maker(
    after=restored.last_key, next_commit=restored.next_commit, next_event=restored.next_event
)
while True:
    commit = make.accepted(b"first" * 200, b"second")
    store.apply(commit)
    print(commit.n, flush=True)
"""


def test_kill_9_loses_nothing_that_was_confirmed(tmp_path: Path) -> None:
    confirmed = 0
    for boot in range(1, 6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE_UNTIL_KILLED, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        with writer, closing(writer.stdout) as lines:
            for _ in range(boot * 7):
                confirmed = int(lines.readline())
            writer.send_signal(signal.SIGKILL)
            confirmed = max([confirmed, *(int(line) for line in lines if line.endswith("\n"))])
    with closing(SqliteStore(tmp_path)) as store:
        restored = store.open()
        kept = restored.next_commit - 1
        assert kept >= confirmed >= 5 * 7
        assert restored.boot == 6
        assert len(list(restored.open)) == restored.next_event == 2 * kept
        lines_kept = b"".join(page.lines for page in store.events(0, 1 << 30))
        assert lines_kept == b"".join(map(event_line, range(2 * kept)))


class TestMemory:
    def test_a_crash_keeps_what_was_applied_and_ends_the_old_life(self) -> None:
        model, store = Model(), MemoryStore()
        store.open()
        for commit in mixed_commits(20):
            store.apply(commit)
            model.apply(commit)
            crashed, store = store, store.crash()
            model.check_restored(store.open())
            model.check(store)
            with pytest.raises(StoreBroken, match="the store is closed"):
                crashed.apply(commit)

    def test_a_refusing_store_writes_nothing_until_it_is_let(self) -> None:
        store = MemoryStore()
        store.open()
        commit = Maker().accepted(b"a")
        store.refuse = StoreFull("no room")
        with pytest.raises(StoreFull, match="no room"):
            store.apply(commit)
        assert store.counts().messages == 0
        store.refuse = None
        store.apply(commit)

    def test_has_no_backup(self, tmp_path: Path) -> None:
        with pytest.raises(StoreBroken, match="a store in memory has no backup"):
            MemoryStore().backup(tmp_path / "copy")
