"""The loop of the pipeline, closed on a small fleet: what learning adds, and what needs none."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from bench.pipeline.loop import WAYS, Loop, close
from lasthop.policy import BUILT_IN, Forwarding, encode
from lasthop.runtime.cli import main

DAYS, SWITCH = 10, 6


def version(folder: Path, forwarding: Forwarding) -> Path:
    """A version that says the same of every device."""
    path = folder / "policies.json"
    path.write_bytes(encode(msgspec.structs.replace(BUILT_IN, default=forwarding)))
    return path


def closed(folder: Path, forwarding: Forwarding, *, seed: int = 1) -> Loop:
    path = version(folder, forwarding)
    return close(path, devices=6, days=DAYS, switch=SWITCH, seed=seed)


def test_a_version_that_teaches_nothing_changes_nothing(tmp_path: Path) -> None:
    """What it is credited with is then the policy's own, to the message."""
    loop = closed(tmp_path, Forwarding(policy="predictive"))
    assert loop.own == loop.untaught
    assert loop.own != loop.live


def test_the_policy_of_the_log_is_compared_with_one_that_nobody_taught(tmp_path: Path) -> None:
    loop = closed(tmp_path, Forwarding(policy="predictive", price=0.25))
    assert set(loop.results()) == set(WAYS)
    assert all(result.forwarded and result.read_online for result in loop.results().values())
    assert loop.predictive.waste < loop.live.waste
    assert loop.own != loop.untaught


def test_every_way_lives_through_the_same_world(tmp_path: Path) -> None:
    loop = closed(tmp_path, Forwarding())
    assert len({result.read_online for result in loop.results().values()}) == 1
    assert closed(tmp_path, Forwarding(), seed=2).live != loop.live


def test_people_see_the_untaught_policy_beside_the_learned_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = version(tmp_path, Forwarding(policy="predictive"))
    arguments = ["--devices", "2", "--days", "4", "--switch", "2", "--seed", "3"]
    with pytest.raises(SystemExit) as ended:
        main(["bench", "loop", "--policies", str(path), *arguments])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "2 devices, days 3 to 4" in said
    assert all(name in said for name in WAYS.values())


def test_machines_get_the_rates_of_every_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = version(tmp_path, Forwarding())
    arguments = ["--devices", "2", "--days", "4", "--switch", "2", "--json"]
    with pytest.raises(SystemExit):
        main(["bench", "loop", "--policies", str(path), *arguments])
    told = json.loads(capsys.readouterr().out)
    assert set(told["rates"]) == set(WAYS)
    assert told["seed"] == 0
