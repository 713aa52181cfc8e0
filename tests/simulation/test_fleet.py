"""A rehearsal of many devices: the same days under several policies, and its log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lasthop.events import Kind
from lasthop.runtime.cli import main
from lasthop.simulation.fleet.rehearse import FleetDevice
from lasthop.simulation.fleet.tally import FleetResult, compare, result_of
from lasthop.simulation.fleet.world import person

POLICIES = ("on-line", "on-demand", "unified")


@pytest.fixture(scope="module")
def results() -> dict[str, FleetResult]:
    return compare(POLICIES, devices=12, days=10)


def test_on_line_loses_nothing_and_on_demand_wastes_nothing(
    results: dict[str, FleetResult],
) -> None:
    assert results["on-line"].loss == 0
    assert results["on-demand"].waste == 0
    assert results["on-line"].waste > 0.2
    assert results["on-demand"].loss > 0.02


def test_the_unified_policy_lies_between(results: dict[str, FleetResult]) -> None:
    assert results["unified"].waste < results["on-line"].waste
    assert results["unified"].loss < results["on-demand"].loss


def test_everybody_is_compared_with_the_same_readers(results: dict[str, FleetResult]) -> None:
    assert len({result.read_online for result in results.values()}) == 1
    assert results["unified"].forwarded == sum(r[0] for r in results["unified"].by_day.values())


def test_waste_and_loss_are_what_a_look_at_each_message_gives() -> None:
    lived = [FleetDevice(3, person(3, 7), 10, policy=p, told=None) for p in ("unified", "on-line")]
    for device in lived:
        device.live(write=False)
    device, best = lived
    result = result_of(device, best)
    assert result.wasted == len(device.forwarded.keys() - device.read.keys())
    assert result.lost == len(best.read.keys() - device.read.keys())
    assert result.forwarded == len(device.forwarded)
    assert result.read_online == len(best.read)


def test_processes_change_nothing(results: dict[str, FleetResult]) -> None:
    assert compare(POLICIES, devices=12, days=10, processes=2) == results


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sim", "fleet", *words])
    assert ended.value.code == 0


def test_the_command_says_the_same(
    results: dict[str, FleetResult], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "log"
    options = ["--devices", "12", "--days", "10", "--out", str(out)]
    run(*options, "--json")
    said = json.loads(capsys.readouterr().out)
    assert list(said["policies"]) == list(POLICIES)
    for name, result in results.items():
        assert said["policies"][name]["waste"] == result.waste
        assert said["policies"][name]["loss"] == result.loss
    lines = [line for path in out.rglob("*.jsonl") for line in path.read_text().splitlines()]
    assert len(lines) == said["log"]
    assert {json.loads(line)["kind"] for line in lines} >= {Kind.ACCEPTED, Kind.READ}
    run("--devices", "2", "--days", "2")
    assert "unified" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options, complaint",
    [
        (["--policy", "psychic"], "no such policy (policy='psychic', known='on-line"),
        (["--out", "."], "the folder for the log is not empty"),
    ],
)
def test_what_cannot_be_done_is_said(
    capsys: pytest.CaptureFixture[str], options: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sim", "fleet", "--devices", "1", "--days", "1", *options])
    assert ended.value.code != 0
    assert complaint in capsys.readouterr().err
