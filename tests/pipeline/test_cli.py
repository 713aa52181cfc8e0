"""The commands, as they are typed; each of them a process with a Java of its own.

About `runtime/cli/pipeline.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lasthop.policy import FORMAT, Lineage, Policies
from lasthop.policy.store import PolicyStore
from tests.pipeline.quick import quickly

ROOT = Path(__file__).parents[2]


def lasthop(*arguments: str, fails: bool = False) -> str:
    command = [sys.executable, "-m", "lasthop", "pipeline", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) is fails, done.stderr[-2000:]
    return done.stderr if fails else done.stdout


def test_versions_are_listed_and_taken_back(tmp_path: Path) -> None:
    policy_store = PolicyStore(tmp_path / "policies")
    names = [
        policy_store.publish(
            Policies(FORMAT, "draft", Lineage("1", 10**15 + n * 10**7, note=f"no. {n}"))
        )
        for n in range(2)
    ]
    listed = lasthop("policies", "--data", str(tmp_path))
    assert [line[0] for line in listed.splitlines()] == [" ", "*"]
    assert names[1] in listed.splitlines()[1]
    assert json.loads(lasthop("rollback", "--data", str(tmp_path), "--json")) == {
        "version": names[0]
    }
    assert "no earlier version" in lasthop("rollback", "--data", str(tmp_path), fails=True)


def test_mistakes_are_said_in_one_line_and_without_starting_spark(tmp_path: Path) -> None:
    log = tmp_path / "log"
    where = ("--data", str(tmp_path))
    assert "there is no event log in" in lasthop("run", *where, fails=True)
    log.mkdir()
    said = lasthop("run", *where, "--conf", "colour=red", fails=True)
    assert "a setting is spark.NAME=VALUE" in said
    said = lasthop("learn", *where, "--loss-budget", "news=2", fails=True)
    assert "--loss-budget news=2: a budget is SHARE or APP=SHARE, from 0 to 1" in said
    assert "unknown policy" in lasthop("whatif", "--policy", "wild", *where, fails=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.nightly
def test_from_a_log_to_a_policy_a_page_and_an_answer(fleet_log: Path, tmp_path: Path) -> None:
    where = ("--log", str(fleet_log), "--data", str(tmp_path), "--master", "local[2]")
    quick = quickly()
    done = json.loads(lasthop("run", *where, *quick, "--json").splitlines()[-1])
    assert done["ingested"]["quarantined"] == 0
    assert done["rows"]["gold.last_hop"] > 0
    learned = json.loads(lasthop("learn", *where, *quick, "--json").splitlines()[-1])
    assert learned["devices"] > 0
    assert learned["version"] in lasthop("policies", "--data", str(tmp_path))
    answer = lasthop("whatif", "--policy", learned["version"], *where, *quick)
    assert "logged decisions again" in answer
    assert "Figures under `estimate` are estimates" in answer
    page = tmp_path / "report.html"
    lasthop("report", *where, *quick, "--out", str(page))
    assert page.read_text().startswith("<!doctype html>")
    compacted = json.loads(lasthop("compact", *where, *quick, "--json").splitlines()[-1])
    assert set(compacted) == {"compacted_days", "deleted_directories"}
