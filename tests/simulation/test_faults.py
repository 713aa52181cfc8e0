"""Fault schedules: nothing lost, nothing twice, nothing out of order, and every schedule again."""

from __future__ import annotations

import json
import os

import pytest
from typer.testing import CliRunner

from lasthop.runtime.cli import app
from lasthop.simulation.campaign import Tally, campaign, run_some
from lasthop.simulation.faults import run

SCHEDULES = int(os.environ.get("LASTHOP_FAULT_SCHEDULES", "300"))
"""`make nightly` has a hundred thousand, of which these are the first."""

PARTS = 10
"""The schedules are shared among as many tests, so that all cores have something to do."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_fault_schedules_break_no_promise(part: int) -> None:
    count = SCHEDULES // PARTS
    tally = campaign(schedules=count, seed=part * count, sqlite_every=20, processes=1)
    assert tally.schedules == count
    assert tally.messages >= 50 * count
    assert tally.good, f"seed {tally.failing_seed}: {tally.why}"


def test_a_seed_gives_the_same_schedule_again() -> None:
    assert run(11) == run(11)


def test_schedules_crash_gateways_and_devices() -> None:
    assert run_some(0, 20, 50, 0).crashes > 10


def test_processes_share_the_work_and_find_the_same() -> None:
    alone = campaign(schedules=8, seed=100, sqlite_every=0, processes=1)
    together = campaign(schedules=8, seed=100, sqlite_every=0, processes=2)
    assert alone == together


def test_the_smallest_failing_seed_is_reported() -> None:
    total = Tally()
    total.add(Tally(schedules=1, lost=1, failing_seed=9, why="nine"))
    total.add(Tally(schedules=1, duplicated=1, failing_seed=4, why="four"))
    total.add(Tally(schedules=1))
    assert (total.failing_seed, total.why, total.good) == (4, "four", False)
    assert (total.schedules, total.lost, total.duplicated) == (3, 1, 1)


def test_the_command_prints_the_counts_as_json() -> None:
    result = CliRunner().invoke(app, ["sim", "faults", "--schedules", "3", "--seed", "5", "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["schedules"] == 3
    assert report["messages"] >= 150
    assert (report["lost"], report["duplicated"], report["misordered"]) == (0, 0, 0)
    assert report["failing_seed"] is None
