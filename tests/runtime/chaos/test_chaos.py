"""`lasthop chaos` as a process: what it reports, and that nothing of it is left, however it ends.

`CHAOS_SECONDS=3600 CHAOS_SEED=7` in the environment make the run longer, and choose its faults.

About `runtime/chaos/`.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from lasthop.runtime.chaos.fault_schedule import FaultKind
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import MarkedCommand, eventually

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="looks for processes in /proc"
)

SECONDS = int(os.environ.get("CHAOS_SECONDS", "15"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))
OPTIONS = os.environ.get("CHAOS_OPTIONS", "").split()

STARTED = 8
"""Processes of a run: the gateway, four devices, three publishers."""


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 240)
def test_chaos_breaks_no_promise_and_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chaos = MarkedCommand(
        tmp_path, "chaos", "--seconds", str(SECONDS), "--seed", str(SEED), "--json", *OPTIONS
    )
    code, output = chaos.wait(SECONDS + 200)
    said = chaos.errors.read_text()
    assert output, said
    report = json.loads(output)
    promises = ("lost", "duplicated", "misordered", "untrue", "stuck")
    assert {name: report[name] for name in promises} == dict.fromkeys(promises, 0), report
    assert code == 0, said
    assert report["delivered"] == report["accepted"] > 50
    assert report["faults"] == sum(report["kinds"].values()) >= SECONDS / 3
    assert report["kills"] == report["kinds"]["kill"] >= SECONDS / 10
    assert 0 < report["max_rss_mb"] < 500
    assert report["seed"] == SEED
    for kind in FaultKind:
        assert report["kinds"][kind] > 0 or kind in report["not_done"], kind
    assert "faults begin" in said
    assert (chaos.alive, chaos.left) == ([], [])
    with capsys.disabled():
        print(f"\nchaos: {json.dumps({**report, 'not_done': list(report['not_done'])})}")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_however_chaos_is_stopped_nothing_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    chaos = MarkedCommand(tmp_path, "chaos", "--seconds", "60", "--plain")
    eventually(lambda: chaos.said("starting 4 devices") or chaos.said("starting 3"), "it starts")
    chaos.process.send_signal(number)
    code, _ = chaos.wait()
    eventually(lambda: not chaos.alive, "all its processes have ended")
    if number is signal.SIGTERM:  # Whoever is killed cannot clean up.
        assert (code, chaos.left) == (130, [])
        last = chaos.errors.read_text().splitlines()[-1]
        assert last == "lasthop: stopped before there was a report"


def test_a_directory_that_is_not_empty_is_refused(lasthop: Lasthop, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = lasthop("chaos", "--keep", str(tmp_path), fails=True)
    assert result.code == 2
    assert "is not empty; a run wants a directory of its own" in result.error
