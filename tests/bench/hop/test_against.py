"""Two checkouts are compared round by round, each with its own sources."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from bench.hop.against import show, versus
from bench.hop.pair import Run
from bench.hop.processes import ROOT
from lasthop.runtime.cli import main

HERE, THERE = Path("/src/here"), Path("/src/there")


def run(rate: float, cpu: float) -> Run:
    return Run(
        count=1000,
        seconds=1000 / rate,
        confirmed=1.0,
        broker_cpu=cpu,
        publisher_cpu=0.01,
        device_cpu=0.02,
        delays=[],
        late=[],
    )


def test_a_ratio_is_that_of_a_round_and_the_median_counts() -> None:
    # The machine was busy in the second round, and this does not look like a change.
    here = [run(10_000, 0.03), run(2000, 0.09), run(10_000, 0.03)]
    there = [run(8000, 0.04), run(1600, 0.12), run(9000, 0.03)]
    result = versus((HERE, THERE), here, there)
    assert result.gateway_cpu.median == pytest.approx(0.75)
    assert result.rate.median == pytest.approx(1.25)
    assert result.here.gateway_cpu.text() == "30 (30 to 90)"
    assert result.there.gateway_cpu.text() == "40 (30 to 120)"
    assert (result.messages, result.rounds) == (1000, 3)
    out = io.StringIO()
    show(result, Console(file=out, width=150))
    assert "gateway CPU a message, here / there: 0.750 (0.750 to 1.000)" in out.getvalue()
    assert "messages a second, here / there: 1.250 (1.111 to 1.250)" in out.getvalue()
    assert "/src/there" in out.getvalue()


def test_each_checkout_runs_its_own_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, marks = tmp_path / "other", tmp_path / "marks"
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "src", other / "src", ignore=ignored)
    shutil.copytree(ROOT / "packages/xml/src", other / "packages/xml/src", ignore=ignored)
    shutil.copytree(ROOT / "bench", other / "bench", ignore=ignored)
    marks.mkdir()
    with (other / "src" / "lasthop" / "__init__.py").open("a") as package:
        package.write(f"\n\nimport os\n\nopen({str(marks)!r} + f'/{{os.getpid()}}', 'w').close()\n")
    arguments = ["--against", str(other), "--messages", "500", "--rounds", "2"]
    with pytest.raises(SystemExit) as ended:
        main(["bench", "hop", *arguments, "--in", str(tmp_path), "--json"])
    assert ended.value.code == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["here"]["checkout"], result["there"]["checkout"]) == (str(ROOT), str(other))
    assert (result["messages"], result["rounds"]) == (500, 2)
    assert result["there"]["rate"]["median"] > 0
    assert result["rate"]["lowest"] > 0
    # A gateway and a device; nothing of the other side.
    assert len(os.listdir(marks)) == 2


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["--against", "/nowhere"], "--against /nowhere: this is not a checkout of lasthop"),
        (
            ["--against", str(ROOT), "--only", "mosquitto"],
            "--only and --against cannot be used together: --against runs no other systems",
        ),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "hop", *arguments])
    assert ended.value.code == 2
    assert capsys.readouterr().err.strip().endswith(message)
