"""What is old goes, in steps; what is open or young stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lasthop.clock import DAY, Micros
from lasthop.message import Message, Target, TargetKind, first_key_at
from lasthop.runtime.housekeeping import Housekeeping, trim_log
from lasthop.runtime.settings import Retention
from lasthop.store.commit import Commit, DeliveryRow, KeyRow
from lasthop.store.memory import MemoryStore
from lasthop.store.writer import CommitWriter

NOW: Micros = 1_800_000_000_000_000


class Stopped:
    def now(self) -> Micros:
        return NOW


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(incarnation=7)


@pytest.fixture
def writer(store: MemoryStore) -> Iterator[CommitWriter]:
    writer = CommitWriter(store, next_commit=store.open().next_commit)
    yield writer
    writer.close()


def message(age: Micros) -> Message:
    target = Target(TargetKind.DEVICE, "phone")
    return Message(first_key_at(NOW - age), 0, "default", "publisher:", target, NOW - age)


def delivery(of: Message, *, open: bool) -> DeliveryRow:  # noqa: A002
    return DeliveryRow(of.key, 1, 0 if open else 10, open, 0, 0, 0, of.accepted_at, -1)


async def test_a_round_forgets_what_is_old_and_done(
    store: MemoryStore, writer: CommitWriter, tmp_path: Path
) -> None:
    old, still_open, young = message(8 * DAY), message(8 * DAY - 1000), message(6 * DAY)
    commit = Commit(n=1, first_event=0, messages=[old, still_open, young])
    for row in (
        delivery(old, open=False),
        delivery(still_open, open=True),
        delivery(young, open=False),
    ):
        commit.deliveries.append(row)
    commit.keys = [
        KeyRow("default", "old", b"", old.key, 1, NOW - 3 * DAY),
        KeyRow("default", "young", b"", old.key, 1, NOW - DAY),
    ]
    store.apply(commit)
    housekeeping = Housekeeping(writer, Retention(), clock=Stopped(), log_directory=tmp_path)
    gone = await housekeeping.tidy()
    assert (gone.messages, gone.deliveries, gone.keys) == (1, 1, 1)
    assert set(store.messages([old.key, still_open.key, young.key])) == {still_open.key, young.key}
    assert set(store.find_keys("default", ["old", "young"])) == {"young"}
    assert (await housekeeping.tidy()).messages == 0


def test_days_of_the_log_go_when_they_are_over(tmp_path: Path) -> None:
    for day in ("2027-01-13", "2027-01-14", "2027-01-15"):
        (tmp_path / f"date={day}").mkdir()
        (tmp_path / f"date={day}" / f"events-{int(day[-2:]):020}.jsonl").write_text("{}\n")
    (tmp_path / "date=2027-01-13" / "notes.txt").write_text("not ours to remove")
    assert trim_log(tmp_path, NOW) == 2  # 2027-01-15T08:00:00Z
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*"))
    assert left == [
        "date=2027-01-13/notes.txt",
        "date=2027-01-15/events-00000000000000000015.jsonl",
    ]
    assert not (tmp_path / "date=2027-01-14").exists()


def test_a_log_that_is_not_there_has_nothing_to_trim(tmp_path: Path) -> None:
    assert trim_log(tmp_path / "log", NOW) == 0
