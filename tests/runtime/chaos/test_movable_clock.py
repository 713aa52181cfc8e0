"""The clock that chaos moves: another process sees it move, and its event loop does not mind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lasthop.runtime.chaos.movable_clock import MovableClock
from tests.runtime.conftest import Lasthop

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))

PROGRAM = "import time; print(time.time(), time.monotonic())"


def times(clock: MovableClock) -> tuple[float, float]:
    """The time of day and of event loops, as a process with this clock sees them."""
    command = [sys.executable, "-c", PROGRAM]
    said = subprocess.check_output(command, env={**os.environ, **clock.environment}, text=True)
    day, loop = said.split()
    return float(day), float(loop)


@pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed")
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_moved_clock_moves_the_time_of_day_and_nothing_else(tmp_path: Path, seconds: int) -> None:
    clock = MovableClock(LIBRARIES[0], tmp_path / "clock")
    before, loop_before = times(clock)
    clock.move(seconds)
    moved, loop_moved = times(clock)
    clock.move(0)
    after, _ = times(clock)
    assert moved - before == pytest.approx(seconds, abs=30)
    assert after - before == pytest.approx(0, abs=60)
    assert 0 <= loop_moved - loop_before < 30


def test_a_process_never_finds_half_a_number(tmp_path: Path) -> None:
    clock = MovableClock(Path("library"), tmp_path / "clock")
    assert (tmp_path / "clock").read_text() == "+0\n"
    clock.move(-3600)
    assert (tmp_path / "clock").read_text() == "-3600\n"
    assert [path.name for path in tmp_path.iterdir()] == ["clock"]


def test_a_library_that_is_not_there_is_said_before_anything_starts(lasthop: Lasthop) -> None:
    result = lasthop("chaos", "--faketime", "/nowhere.so", fails=True)
    assert result.error.splitlines()[-1] == (
        "lasthop: --faketime /nowhere.so: there is no such file (Debian: apt install faketime)"
    )
