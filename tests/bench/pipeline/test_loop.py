"""The loop of the pipeline, closed on a small fleet: what learning adds, and what needs none."""

from __future__ import annotations

import json
import os
from math import sqrt
from pathlib import Path

import msgspec
import pytest

from bench.pipeline.judges import JUDGED, SEEDS, measured, ratio
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


def test_an_interval_is_over_devices() -> None:
    value, low, high = ratio([(1, 10), (3, 10), (2, 10)])
    assert value == pytest.approx(0.2)
    assert (high - value) == pytest.approx(1.959964 * sqrt(2 * 3 / 2) / 30, abs=1e-6)
    assert low == pytest.approx(value - (high - value), abs=2e-6)
    assert ratio([(0, 0)]) == [0.0, 0.0, 0.0]


def test_what_is_judged_has_ranks_and_bytes(tmp_path: Path) -> None:
    loop = closed(tmp_path, Forwarding())
    figures = measured([loop.live, loop.live], DAYS - SWITCH)
    assert 0 < figures["rank_retained"][0] <= 1
    assert figures["bytes_per_read_online"][0] > 8
    assert figures["waste"] == [pytest.approx(loop.live.waste, abs=1e-6)] * 3
    assert set(JUDGED) <= set(WAYS)
    assert not set(SEEDS) & {0, 1, 2, 3}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif("PIPELINE_NIGHTLY" not in os.environ, reason="make nightly: Spark learns")
def test_fleets_judge_what_is_learned_from_their_logs(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seeds", "1", "--devices", "4", "--days", "8", "--switch", "6", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(["bench", "loop", *arguments])
    assert ended.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["ways"]) == {WAYS[name] for name in JUDGED}
    assert all(
        low <= value <= high for way in told["ways"].values() for value, low, high in way.values()
    )
