"""The exporter: every event in one sealed segment, once and in order, whatever goes wrong."""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from lasthop.clock import DAY, HOUR, SECOND, Micros
from lasthop.errors import StoreBroken, StoreError, StoreFull
from lasthop.eventlog.exporter import POLL, STEP_BYTES, Exporter, Rolling
from lasthop.eventlog.segment import sealed_segments, unsealed_files
from tests.eventlog.disk import Crash, Disk
from tests.eventlog.history import NOON, History, sealed_lines


def exporter_of(
    history: History, log: Path, *, rolling: Rolling | None = None, disk: Disk | None = None
) -> Exporter:
    def confirm(until: int) -> None:
        if disk is not None:
            disk.happen("confirm")
        history.store.exported(until)

    return Exporter(log, history.store, confirm=confirm, rolling=rolling, files=disk)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "data" / "log"


def test_a_segment_is_named_by_its_date_and_its_first_offset(log: Path) -> None:
    history = History()
    history.commit([NOON, NOON])
    exporter_of(history, log).finish(NOON)
    history.commit([NOON + 1])
    exporter_of(history, log).finish(NOON)
    assert [str(segment.path.relative_to(log)) for segment in sealed_segments(log)] == [
        "date=2026-11-15/events-00000000000000000000.jsonl",
        "date=2026-11-15/events-00000000000000000002.jsonl",
    ]
    assert sealed_lines(log) == history.lines
    assert history.store.exported_to() == 3


def test_what_is_not_sealed_is_hidden_and_not_confirmed(log: Path) -> None:
    history = History()
    history.commit([NOON])
    exporter_of(history, log).step(NOON)
    (unsealed,) = unsealed_files(log)
    assert unsealed.name == ".events-00000000000000000000.jsonl.open"
    assert not sealed_segments(log)
    assert history.store.exported_to() == 0


def test_a_segment_is_sealed_at_its_age(log: Path) -> None:
    history = History()
    history.commit([NOON])
    exporter = exporter_of(history, log, rolling=Rolling(age=10 * SECOND))
    assert exporter.step(NOON) == NOON + POLL
    assert exporter.step(NOON + 9 * SECOND + POLL // 2) == NOON + 10 * SECOND
    assert not sealed_segments(log)
    assert exporter.step(NOON + 10 * SECOND) == NOON + 10 * SECOND + POLL
    assert sealed_lines(log) == history.lines


def test_age_counts_from_the_event_so_that_restarts_do_not_put_sealing_off(log: Path) -> None:
    history = History()
    history.commit([NOON])
    exporter_of(history, log).step(NOON + 4 * SECOND)
    exporter_of(history, log).step(NOON + 10 * SECOND)
    assert sealed_lines(log) == history.lines


def test_a_segment_is_sealed_although_the_clock_was_set_back(log: Path) -> None:
    history = History()
    history.commit([NOON + DAY])
    exporter = exporter_of(history, log)
    exporter.step(NOON)
    exporter.step(NOON + 10 * SECOND)
    assert sealed_lines(log) == history.lines


def test_rolling_may_change_while_the_exporter_runs(log: Path) -> None:
    history = History()
    history.commit([NOON])
    exporter = exporter_of(history, log, rolling=Rolling(age=HOUR))
    exporter.step(NOON + SECOND)
    exporter.rolling = Rolling(age=SECOND)
    exporter.step(NOON + SECOND)
    assert sealed_lines(log) == history.lines


def test_a_segment_is_sealed_at_its_size(log: Path) -> None:
    history = History()
    for _ in range(10):
        history.commit([NOON] * 5)
    exporter_of(history, log, rolling=Rolling(size=1000)).step(NOON)
    segments = sealed_segments(log)
    assert len(segments) > 2
    assert all(1000 <= segment.path.stat().st_size < 2000 for segment in segments)


def test_nothing_happens_without_events(log: Path) -> None:
    exporter = exporter_of(History(), log)
    assert exporter.step(NOON) == NOON + POLL
    exporter.step(NOON + DAY)
    exporter.finish(NOON + DAY)
    assert not list(log.iterdir())


def test_a_step_does_a_bounded_amount_and_asks_for_more(log: Path) -> None:
    history = History()
    for _ in range(60):
        history.commit([NOON] * 100)
    exporter = exporter_of(history, log)
    assert exporter.step(NOON) == NOON
    (unsealed,) = unsealed_files(log)
    assert STEP_BYTES // 2 < unsealed.stat().st_size <= STEP_BYTES
    exporter.finish(NOON)
    assert sealed_lines(log) == history.lines


def test_dates_are_those_of_the_events_also_when_the_clock_jumps(log: Path) -> None:
    history = History()
    midnight = NOON + DAY // 2
    history.commit([midnight - 1, midnight, midnight + 1])
    history.commit([midnight + 5 * DAY])
    history.commit([midnight - 1, midnight - 1])
    exporter_of(history, log).finish(midnight)
    assert [(segment.first, segment.date) for segment in sealed_segments(log)] == [
        (0, "2026-11-15"),
        (1, "2026-11-16"),
        (3, "2026-11-21"),
        (4, "2026-11-15"),
    ]
    assert sealed_lines(log) == history.lines


def test_a_full_disk_is_said_and_loses_nothing(log: Path) -> None:
    history = History()
    history.commit([NOON] * 5)
    disk = Disk()
    exporter = exporter_of(history, log, disk=disk)
    for operation in ("write", "sync", "create"):
        disk.fault = lambda wanted=operation: (  # type: ignore[misc]
            OSError(errno.ENOSPC, "no space") if disk.operations[-1] == wanted else None
        )
        with pytest.raises(StoreFull, match="no room for the event log"):
            exporter.finish(NOON)
        assert not sealed_lines(log)
        assert not unsealed_files(log)
    disk.restart()
    exporter.finish(NOON)
    assert sealed_lines(log) == history.lines


def test_a_failing_disk_is_an_error_of_the_store(log: Path) -> None:
    history = History()
    history.commit([NOON])
    disk = Disk()
    disk.fault = lambda: OSError(errno.EIO, "broken")
    with pytest.raises(StoreError, match="cannot be written"):
        exporter_of(history, log, disk=disk).step(NOON)


def test_a_confirmation_that_fails_is_made_up_for(log: Path) -> None:
    history = History()
    history.commit([NOON])
    answers = [StoreFull("no room"), None, None]

    def confirm(until: int) -> None:
        if (error := answers.pop(0)) is not None:
            raise error
        history.store.exported(until)

    exporter = Exporter(log, history.store, confirm=confirm)
    with pytest.raises(StoreFull):
        exporter.finish(NOON)
    exporter.step(NOON)
    assert history.store.exported_to() == 1
    assert sealed_lines(log) == history.lines


def test_segments_that_an_operator_moved_away_are_not_written_again(log: Path) -> None:
    history = History()
    history.commit([NOON])
    exporter_of(history, log).finish(NOON)
    log.rename(log.with_name("archive"))
    history.commit([NOON])
    exporter_of(history, log).finish(NOON)
    assert sealed_lines(log) == history.lines[1:]


@pytest.mark.parametrize("events_after_restore", [1, 5])
def test_segments_of_another_life_of_the_store_are_not_added_to(
    log: Path, events_after_restore: int
) -> None:
    history = History()
    history.commit([NOON] * 3)
    exporter_of(history, log).finish(NOON)
    before = sealed_lines(log)
    restored = History()
    restored.commit([NOON + 1] * events_after_restore)
    with pytest.raises(StoreBroken, match="another incarnation of the store"):
        exporter_of(restored, log).finish(NOON)
    assert sealed_lines(log) == before


def test_events_that_the_store_lost_are_not_passed_over(log: Path) -> None:
    history = History()
    history.commit([NOON])
    history.commit([NOON])
    exporter = exporter_of(history, log)
    history.store.exported(1)
    exporter.step(NOON)
    history.commit([NOON])
    history.store.exported(3)
    history.drop_exported()
    history.commit([NOON])
    with pytest.raises(StoreBroken, match="gap"):
        exporter.step(NOON)


def test_what_an_interrupted_export_left_behind_is_cleared_away(log: Path) -> None:
    history = History()
    history.commit([NOON])
    exporter_of(history, log).finish(NOON)
    stale = log / "date=2026-11-15" / ".events-00000000000000000000.jsonl.open"
    stale.write_bytes(b'{"v":1,"gw":"gat')
    exporter_of(history, log).step(NOON)
    assert not unsealed_files(log)


def export_with_crashes(directory: Path, *, kill_at: int, lose_power_at: int) -> list[bool]:
    """Export two days with a kill and then a loss of power; returns which of them took place."""
    log = directory / "log"
    history = History()
    disk = Disk()
    history.commit([NOON, NOON + DAY])
    history.commit([NOON + DAY])
    happened = []
    for operation in (kill_at, lose_power_at):
        disk.fail_at(operation, Crash)
        try:
            exporter_of(history, log, disk=disk).finish(NOON)
        except Crash:
            happened.append(True)
        else:
            happened.append(False)
        disk.restart()
        history.drop_exported()
    disk.lose_power(Random(kill_at))
    history.commit([NOON + DAY])
    exporter_of(history, log, disk=disk).finish(NOON)
    assert sealed_lines(log) == history.lines, disk.operations
    assert not unsealed_files(log)
    return happened


def test_crashes_at_any_two_operations_leave_neither_gap_nor_duplicate() -> None:
    kill_at = 0
    killed = True
    while killed:
        lose_power_at = 0
        lost_power = True
        while lost_power:
            with TemporaryDirectory() as directory:
                killed, lost_power = export_with_crashes(
                    Path(directory), kill_at=kill_at, lose_power_at=lose_power_at
                )
            lose_power_at += 1
        kill_at += 1
    assert kill_at > 15


FAULTS: dict[str, Callable[[], BaseException]] = {
    "kill": Crash,
    "power": Crash,
    "full": lambda: OSError(errno.ENOSPC, "no space"),
    "broken": lambda: OSError(errno.EIO, "i/o error"),
}

moves = st.one_of(
    st.tuples(
        st.just("commit"),
        st.lists(st.sampled_from([0, SECOND, HOUR, DAY, -DAY, -HOUR]), min_size=1, max_size=4),
    ),
    st.tuples(st.just("step"), st.sampled_from([0, SECOND, 10 * SECOND])),
    st.tuples(st.sampled_from(sorted(FAULTS)), st.integers(0, 25)),
    st.tuples(st.just("drop"), st.none()),
)


@settings(max_examples=150, deadline=None)
@given(schedule=st.lists(moves, max_size=40), seed=st.integers(0, 2**32))
def test_under_any_schedule_of_faults_every_event_is_sealed_once_in_order(
    schedule: list[tuple[str, object]], seed: int
) -> None:
    with TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        run = Run(log, Random(seed))
        for move, argument in schedule:
            run.move(move, argument)
            run.assert_sound()
        run.end()
        assert sealed_lines(log) == run.history.lines
        assert not unsealed_files(log)


class Run:
    """One exporter after another over one disk."""

    def __init__(self, log: Path, random: Random) -> None:
        self.log = log
        self.random = random
        self.history = History()
        self.disk = Disk()
        self.now = self.event_time = NOON
        self.power_fails = False
        self._start()

    def _start(self) -> None:
        rolling = Rolling(size=400, age=5 * SECOND)
        self.exporter = exporter_of(self.history, self.log, rolling=rolling, disk=self.disk)

    def move(self, move: str, argument: object) -> None:
        if move == "commit":
            assert isinstance(argument, list)
            times: list[Micros] = []
            for i, step in enumerate(argument):
                # A clock may be set back between two lives, but not within a commit.
                self.event_time += abs(step) if i else step
                times.append(self.event_time)
            self.history.commit(times)
        elif move == "step":
            assert isinstance(argument, int)
            self.now += argument
            self._step()
        elif move == "drop":
            self.history.drop_exported()
        else:
            assert isinstance(argument, int)
            self.power_fails = move == "power"
            self.disk.fail_at(argument, FAULTS[move])

    def _step(self) -> None:
        try:
            self.exporter.step(self.now)
        except StoreError:
            pass
        except Crash:
            self.disk.restart()
            if self.power_fails:
                self.disk.lose_power(self.random)
            self._start()

    def assert_sound(self) -> None:
        sealed = sealed_lines(self.log)
        assert sealed == self.history.lines[: len(sealed)]
        assert len(sealed) >= self.history.store.exported_to()
        for segment in sealed_segments(self.log):
            for line in segment.path.read_bytes().splitlines():
                time = msgspec.json.decode(line)["t"]
                date = datetime.fromtimestamp(time // SECOND, UTC).date().isoformat()
                assert segment.date == date

    def end(self) -> None:
        self.disk.restart()
        self.exporter.finish(self.now)
