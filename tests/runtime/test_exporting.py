"""The thread that exports: until the end, and through trouble."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lasthop.clock import DAY, SECOND, Micros
from lasthop.errors import StoreFull
from lasthop.eventlog.exporter import Exporter, Rolling
from lasthop.eventlog.following import INTEREST, MARK, follow, followed
from lasthop.runtime import exporting
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.exporting import PROMPT, Export
from lasthop.store.commit import Commit
from lasthop.store.memory import MemoryStore


def event(n: int) -> bytes:
    return b'{"v":1,"gw":"g","boot":1,"n":%d,"t":1800000000000000,"kind":"published"}\n' % n


def test_closing_exports_and_seals_what_is_left(tmp_path: Path) -> None:
    store = MemoryStore(incarnation=7)
    store.open()
    rolling = Rolling(age=DAY)
    export = Export(
        Exporter(tmp_path / "log", store, confirm=store.exported, rolling=rolling), SystemClock()
    )
    lines = bytearray(event(0) + event(1))
    store.apply(Commit(n=1, first_event=0, events=lines, event_count=2))
    export.close()
    assert store.exported_to() == 2
    (segment,) = (tmp_path / "log").glob("*/events-*.jsonl")
    assert segment.read_bytes() == bytes(lines)


def test_trouble_with_the_files_is_waited_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exporting, "RETRY", 0.001)
    again = threading.Event()

    class Trouble(Exporter):
        def __init__(self) -> None:
            self.steps = 0

        def step(self, now: Micros) -> Micros:
            self.steps += 1
            if self.steps < 3:
                raise StoreFull("no room")
            again.set()
            return now + DAY

        def finish(self, now: Micros) -> None:
            raise StoreFull("no room at the end either")

    export = Export(Trouble(), SystemClock())
    assert again.wait(5)
    export.close()
    assert "no room at the end either" in capsys.readouterr().out


def test_segments_are_sealed_soon_while_somebody_follows_them(tmp_path: Path) -> None:
    steps = threading.Semaphore(0)
    seen: list[Rolling] = []

    class Watched(Exporter):
        def step(self, now: Micros) -> Micros:
            seen.append(self.rolling)
            steps.release()
            return now + SECOND // 1000

    log = tmp_path / "log"
    (log / "date=2026-11-15").mkdir(parents=True)
    store = MemoryStore(incarnation=7)
    store.open()
    slow = Rolling(age=DAY)
    exporter = Watched(log, store, confirm=store.exported, rolling=slow)
    export = Export(exporter, SystemClock(), log=log)
    assert steps.acquire(timeout=5)
    assert seen[0] == slow
    follow(tmp_path)  # A directory of logs, of which this is one.
    for _ in range(1000):
        assert steps.acquire(timeout=5)
        if seen[-1] == PROMPT:
            break
    export.close()
    assert seen[-1] == PROMPT
    now = SystemClock().now()
    assert followed(log, now)
    assert not followed(log, now + 2 * INTEREST)
    assert not followed(tmp_path / "elsewhere", now)


@pytest.mark.parametrize(
    "said,soon", [("2000000", 2 * SECOND), ("0", SECOND), ("", 10 * SECOND), ("-3", 10 * SECOND)]
)
def test_who_follows_says_how_soon(tmp_path: Path, said: str, soon: Micros) -> None:
    follow(tmp_path)
    now = SystemClock().now()
    assert followed(tmp_path, now) == 10 * SECOND
    (tmp_path / MARK).write_text(said)
    assert followed(tmp_path, now) == soon
    follow(tmp_path, within=3 * SECOND)
    assert followed(tmp_path, now) == 3 * SECOND
    (tmp_path / MARK).write_bytes(b"\xff")
    assert followed(tmp_path, now) is None
