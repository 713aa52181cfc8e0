"""The writer's thread: order, groups, refusals and an orderly end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from threading import Event, current_thread

import pytest

from lasthop.errors import StoreBroken, StoreError, StoreFull
from lasthop.store.base import Store
from lasthop.store.commit import Commit
from lasthop.store.memory import MemoryStore
from lasthop.store.sqlite import SqliteStore
from lasthop.store.writer import CommitWriter
from tests.store.making import Maker

PATIENCE = 10


class GatedStore(MemoryStore):
    """Waits at the gate before it applies, and notes what was applied together."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = Event()
        self.gate = Event()
        self.groups: list[list[int]] = []
        self.fail: Exception | None = None

    def apply(self, *commits: Commit) -> None:
        self.reached.set()
        assert self.gate.wait(PATIENCE)
        if self.fail is not None:
            raise self.fail
        super().apply(*commits)
        self.groups.append([commit.n for commit in commits])


class Answers:
    """Collects what the writer says."""

    def __init__(self) -> None:
        self._answers: SimpleQueue[tuple[int, StoreError | None]] = SimpleQueue()
        self.threads: set[str] = set()

    def __call__(self, n: int, error: StoreError | None) -> None:
        self.threads.add(current_thread().name)
        self._answers.put((n, error))

    def next(self, number: int) -> list[tuple[int, StoreError | None]]:
        return [self._answers.get(timeout=PATIENCE) for _ in range(number)]


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def gated() -> GatedStore:
    return GatedStore()


@pytest.fixture
def writer(gated: GatedStore) -> Iterator[CommitWriter]:
    with closing(CommitWriter(gated, next_commit=gated.open().next_commit)) as writer:
        yield writer
        gated.gate.set()


def submit(writer: CommitWriter, commits: list[Commit], done: Answers) -> None:
    for commit in commits:
        writer.submit(commit, done)


def make_commits(number: int) -> list[Commit]:
    make = Maker()
    return [make.accepted(b"body") for _ in range(number)]


def test_commits_are_confirmed_in_order_from_the_writers_thread(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    gated.gate.set()
    submit(writer, make_commits(50), answers)
    assert answers.next(50) == [(n, None) for n in range(1, 51)]
    assert answers.threads == {"lasthop-store"}


def test_commits_that_wait_are_written_together(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    first, *others = make_commits(5)
    writer.submit(first, answers)
    assert gated.reached.wait(PATIENCE)
    submit(writer, others, answers)
    gated.gate.set()
    answers.next(5)
    assert gated.groups == [[1], [2, 3, 4, 5]]


def test_nothing_is_confirmed_before_it_is_written(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    submit(writer, make_commits(1), answers)
    assert gated.reached.wait(PATIENCE)
    assert answers.threads == set()


def test_a_call_comes_after_the_commits_before_it(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    submit(writer, make_commits(3), answers)
    messages = writer.call(lambda store: store.counts().messages)
    gated.gate.set()
    assert messages.result(PATIENCE) == 3


def test_a_call_that_fails_harms_nobody_else(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    gated.gate.set()

    def fail(_: Store) -> None:
        raise ValueError("mine")

    assert isinstance(writer.call(fail).exception(PATIENCE), ValueError)
    submit(writer, make_commits(1), answers)
    assert answers.next(1) == [(1, None)]


def test_a_cancelled_call_is_not_carried_out(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    submit(writer, make_commits(1), answers)
    assert gated.reached.wait(PATIENCE)
    future = writer.call(Store.counts)
    assert future.cancel()
    gated.gate.set()
    assert writer.call(lambda _: "alive").result(PATIENCE) == "alive"


def test_without_room_commits_are_refused_until_the_first_is_submitted_again(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    gated.gate.set()
    commits = make_commits(5)
    full = gated.refuse = StoreFull("no room")
    submit(writer, commits[:2], answers)
    assert answers.next(2) == [(1, full), (2, full)]
    gated.refuse = None
    submit(writer, commits[2:3], answers)
    assert answers.next(1) == [(3, full)]
    submit(writer, commits, answers)
    assert answers.next(5) == [(n, None) for n in range(1, 6)]


def test_a_commit_on_its_way_behind_a_refused_one_is_refused_as_well(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    commits = make_commits(4)
    full = gated.fail = StoreFull("no room")
    writer.submit(commits[0], answers)
    assert gated.reached.wait(PATIENCE)
    gated.reached.clear()
    submit(writer, [commits[1], *commits], answers)
    blocker = writer.call(lambda _: setattr(gated, "fail", None))
    gated.gate.set()
    blocker.result(PATIENCE)
    assert answers.next(2) == [(1, full), (2, full)]
    assert {error for _, error in answers.next(4)} == {full}
    submit(writer, commits, answers)
    assert answers.next(4) == [(n, None) for n in range(1, 5)]


def test_a_broken_store_refuses_everything_from_then_on(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    gated.gate.set()
    commits = make_commits(2)
    broken = gated.refuse = StoreBroken("smoke")
    submit(writer, commits[:1], answers)
    assert answers.next(1) == [(1, broken)]
    gated.refuse = None
    submit(writer, commits, answers)
    assert answers.next(2) == [(1, broken), (2, broken)]
    assert gated.groups == []


def test_a_gap_breaks_the_store(writer: CommitWriter, gated: GatedStore, answers: Answers) -> None:
    gated.gate.set()
    submit(writer, make_commits(2)[1:], answers)
    ((n, error),) = answers.next(1)
    assert (n, str(error)) == (2, "commits must be consecutive (expected=1, got=2)")


def test_an_unforeseen_error_breaks_the_store(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    gated.gate.set()
    gated.fail = ZeroDivisionError("oh")
    submit(writer, make_commits(1), answers)
    ((_, error),) = answers.next(1)
    assert isinstance(error, StoreBroken)
    assert str(error) == "the store failed (cause=\"ZeroDivisionError('oh')\")"
    assert error.__cause__ is gated.fail


def test_closing_writes_what_was_submitted_and_closes_the_store(
    writer: CommitWriter, gated: GatedStore, answers: Answers
) -> None:
    submit(writer, make_commits(10), answers)
    gated.gate.set()
    writer.close()
    writer.close()
    assert answers.next(10) == [(n, None) for n in range(1, 11)]
    with pytest.raises(StoreBroken, match="the store is closed"):
        gated.counts()
    with pytest.raises(StoreBroken, match="the writer is closed"):
        writer.submit(make_commits(1)[0], answers)
    with pytest.raises(StoreBroken, match="the writer is closed"):
        writer.call(Store.counts)


def test_sqlite_recovers_from_a_full_disk_behind_the_writer(
    tmp_path: Path, answers: Answers
) -> None:
    store = SqliteStore(tmp_path)
    make = Maker()
    with closing(CommitWriter(store, next_commit=store.open().next_commit)) as writer:
        limit(writer, "PRAGMA max_page_count = 40")
        commits = [make.accepted(b"x" * 30_000) for _ in range(20)]
        submit(writer, commits, answers)
        refused = [(n, error) for n, error in answers.next(20) if error is not None]
        assert refused
        assert all(isinstance(error, StoreFull) for _, error in refused)
        limit(writer, "PRAGMA max_page_count = 1000000")
        submit(writer, commits[refused[0][0] - 1 :], answers)
        assert all(error is None for _, error in answers.next(len(refused)))
        assert writer.call(lambda store: store.counts().messages).result(PATIENCE) == 20


def limit(writer: CommitWriter, pragma: str) -> None:
    def work(store: Store) -> None:
        assert isinstance(store, SqliteStore)
        store._connection.execute(pragma)

    writer.call(work).result(PATIENCE)
