"""Reading: one sequence over segments and store, by offset, range and date."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from lasthop.clock import DAY, SECOND
from lasthop.errors import StoreBroken
from lasthop.eventlog.exporter import Exporter, Rolling
from lasthop.eventlog.reader import LogReader
from lasthop.eventlog.segment import EventStamp, day_of, sealed_segments, stamp_of
from lasthop.events import SCHEMA_VERSION
from tests.eventlog.disk import Disk
from tests.eventlog.history import NOON, History


def export(history: History, log: Path, *, size: int = 500) -> None:
    store = history.store
    rolling = Rolling(size=size)
    Exporter(log, store, confirm=store.exported, rolling=rolling, files=Disk()).finish(NOON)


@pytest.fixture
def history() -> History:
    history = History()
    for i in range(12):
        history.commit([NOON + i * SECOND] * (1 + i % 4))
    return history


@pytest.mark.parametrize("dropped", [False, True])
def test_sealed_and_unsealed_events_are_one_sequence(
    tmp_path: Path, history: History, dropped: bool
) -> None:
    export(history, tmp_path)
    if dropped:
        history.drop_exported()
    history.commit([NOON + DAY] * 3)
    with LogReader(tmp_path, history.store) as reader:
        assert list(reader.lines()) == history.lines
        assert [event.n for event in reader.events()] == list(range(len(history.lines)))
        assert reader.end() == len(history.lines)


@settings(max_examples=50, deadline=None)
@given(start=st.integers(0, 40), stop=st.none() | st.integers(0, 40))
def test_any_range_can_be_read(
    start: int, stop: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History()
    for _ in range(8):
        history.commit([NOON] * 3)
    log = tmp_path_factory.mktemp("log")
    export(history, log)
    history.drop_exported()
    history.commit([NOON] * 5)
    with LogReader(log, history.store) as reader:
        assert list(reader.lines(start, stop)) == history.lines[start:stop]


def test_every_event_is_found_by_its_offset(tmp_path: Path, history: History) -> None:
    export(history, tmp_path)
    history.drop_exported()
    history.commit([NOON] * 3)
    assert len(sealed_segments(tmp_path)) > 3
    with LogReader(tmp_path, history.store) as reader:
        assert [reader.line(n) for n in range(len(history.lines))] == history.lines
        assert reader.find(-1) is None
        assert reader.find(len(history.lines)) is None


def test_one_large_segment_is_searched_by_halving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History()
    history.commit([NOON] * 5000)
    export(history, tmp_path, size=64 << 20)
    looked_at = 0

    def counting(line: bytes) -> EventStamp:
        nonlocal looked_at
        looked_at += 1
        return stamp_of(line)

    with LogReader(tmp_path) as reader:
        reader.refresh()
        monkeypatch.setattr("lasthop.eventlog.reader.stamp_of", counting)
        for n in (0, 1, 2500, 4998, 4999):
            assert reader.line(n) == history.lines[n]
    assert looked_at <= 5 * 22


def test_a_segment_sealed_after_the_reader_looked_is_found(
    tmp_path: Path, history: History
) -> None:
    with LogReader(tmp_path, history.store) as reader:
        assert reader.find(3) is not None
        export(history, tmp_path)
        history.drop_exported()
        assert reader.line(5) == history.lines[5]
        assert list(reader.lines()) == history.lines


def test_a_seal_in_the_middle_of_reading_goes_unnoticed(tmp_path: Path) -> None:
    history = History()
    for _ in range(30):
        history.commit([NOON] * 1000)
    with LogReader(tmp_path, history.store) as reader:
        lines = reader.lines()
        first = next(lines)
        export(history, tmp_path)
        history.drop_exported()
        assert [first, *lines] == history.lines


def test_segments_can_be_read_without_the_store(tmp_path: Path, history: History) -> None:
    export(history, tmp_path)
    sealed = list(history.lines)
    history.commit([NOON])
    with LogReader(tmp_path) as reader:
        assert list(reader.lines()) == sealed
        assert reader.end() == len(sealed)
        export(history, tmp_path)
        assert list(reader.lines()) == history.lines


def test_an_old_day_that_was_removed_is_passed_over(tmp_path: Path) -> None:
    history = History()
    history.commit([NOON] * 3)
    history.commit([NOON + DAY] * 3)
    export(history, tmp_path)
    history.drop_exported()
    with LogReader(tmp_path, history.store) as reader:
        reader.refresh()
        sealed_segments(tmp_path)[0].path.unlink()
        assert reader.find(1) is None
        assert list(reader.lines()) == history.lines[3:]


def test_a_day_has_the_events_of_that_date_only(tmp_path: Path) -> None:
    history = History()
    history.commit([NOON, NOON + DAY])
    history.commit([NOON])  # Restarted, with a clock that was set back.
    export(history, tmp_path)
    history.commit([NOON + DAY])
    history.commit([NOON])
    with LogReader(tmp_path, history.store) as reader:
        assert [event.n for event in reader.on(day_of(NOON))] == [0, 2, 4]
        assert [event.n for event in reader.on(day_of(NOON + DAY))] == [1, 3]
        assert not list(reader.on(0))


def test_a_newer_schema_is_read_and_told_of(tmp_path: Path, history: History) -> None:
    with LogReader(tmp_path, history.store) as reader:
        line = msgspec.json.decode(history.lines[0])
        line |= {"v": SCHEMA_VERSION + 1, "weather": {"sky": "blue"}}
        event = reader.decode(msgspec.json.encode(line))
        assert event.n == 0
        assert reader.newest_schema == SCHEMA_VERSION + 1


@pytest.mark.parametrize("line", [b"", b"{", b'{"v":1}', b'{"v":"1"}', b"\xff"])
def test_a_line_that_is_no_event_is_refused(tmp_path: Path, line: bytes) -> None:
    with LogReader(tmp_path) as reader, pytest.raises(StoreBroken, match="cannot be read"):
        reader.decode(line)


def test_an_empty_log_has_nothing(tmp_path: Path) -> None:
    with LogReader(tmp_path / "missing", History().store) as reader:
        assert not list(reader.lines())
        assert reader.end() == 0
        assert reader.find(0) is None


@pytest.mark.parametrize("end", [b"", b"{}\n{", b"{}\n\n"])
def test_a_damaged_segment_is_said(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "date=2026-11-15" / f"events-{0:020d}.jsonl"
    path.parent.mkdir()
    path.write_bytes(end)
    with LogReader(tmp_path) as reader, pytest.raises(StoreBroken):
        reader.refresh()


def test_a_very_long_last_line_is_found_whole(tmp_path: Path) -> None:
    path = tmp_path / "date=2026-11-15" / f"events-{0:020d}.jsonl"
    path.parent.mkdir()
    long = b'{"n":1,"t":2,"reason":"' + b"x" * 100_000 + b'"}'
    path.write_bytes(b'{"n":0,"t":2}\n' + long + b"\n")
    (segment,) = sealed_segments(tmp_path)
    assert segment.last_line() == long
    path.write_bytes(long + b"\n")
    assert segment.last_line() == long
