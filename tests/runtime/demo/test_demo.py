"""`lasthop demo` as a process: what it reports, and that nothing of it is left, however it ends.

About `runtime/demo/`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import MarkedCommand, eventually

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="looks for processes in /proc"
)

PORTS = ["--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0"]


class Demo(MarkedCommand):
    """`lasthop demo` on any ports."""

    def __init__(self, tmp_path: Path, *arguments: str) -> None:
        super().__init__(tmp_path, "demo", *PORTS, *arguments)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_it_reports_and_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--seconds", "20", "--json", "--devices", "6", "--no-pipeline")
    code, output = demo.wait(150)
    assert code == 0, demo.errors.read_text()
    report = json.loads(output)
    sent = report["messages"]
    assert sent["delivered"] == sent["accepted"] > 30
    assert (report["lost"], report["under_way"]) == (0, 0)
    assert (sent["duplicated"], sent["misordered"], sent["foreign"]) == (0, 0, 0)
    assert report["good"] is True
    assert report["looks"]["shown"] > 0
    assert set(report["links"]) == {"wifi", "mno", "satellite"}
    assert sum(link["delivered"] for link in report["links"].values()) == sent["delivered"]
    assert sum(link["resets"] for link in report["links"].values()) > 0
    # Each body has 256 bytes, and nothing that was seen came for less.
    assert report["bytes_per_message"] > 256
    assert 0 < report["latency"]["p50"] <= report["latency"]["p99"]
    assert report["learning"] == {"ran": False, "reason": "--no-pipeline"}
    assert report["after"] is None
    before = report["before"]
    assert before["forwarded"] >= before["wasted"] > 0
    assert before["waste"] == pytest.approx(before["wasted"] / before["forwarded"], abs=1e-4)
    assert (demo.alive, demo.left) == ([], [])


@pytest.mark.timeout(180)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_is_stopped_nothing_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    demo = Demo(tmp_path, "--devices", "3", "--no-pipeline")
    eventually(lambda: demo.said("playing"), "it plays")
    assert len(demo.alive) == 2, "itself and a gateway"
    demo.process.send_signal(number)
    code, output = demo.wait()
    if number is signal.SIGKILL:
        # Whoever is killed cannot clean up; but nothing must go on without it.
        eventually(lambda: not demo.alive, "the gateway has ended too")
        return
    assert code == 130
    assert demo.errors.read_text().splitlines()[-1] == (
        "lasthop: the demo was stopped before it had a report"
    )
    assert "look at" in output
    assert (demo.alive, demo.left) == ([], [])


def test_a_directory_that_is_not_empty_is_refused(lasthop: Lasthop, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = lasthop("demo", "--data", str(tmp_path), fails=True)
    assert result.code == 2
    assert "is not empty" in result.error


@pytest.mark.timeout(180)
def test_a_gateway_that_cannot_start_is_said_in_one_line(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--http", "nonsense", "--no-pipeline")
    code, _ = demo.wait()
    assert code == 1
    said = demo.errors.read_text().splitlines()[-1]
    assert said.startswith("lasthop: lasthop up --json ended: ")
    assert (demo.alive, demo.left) == ([], [])


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_learned_policies_waste_less(tmp_path: Path) -> None:
    seconds = int(os.environ.get("DEMO_SECONDS", "300"))
    demo = Demo(tmp_path, "--seconds", str(seconds), "--json")
    code, output = demo.wait(seconds + 120)
    assert code == 0, demo.errors.read_text()
    report = json.loads(output)
    print(
        json.dumps({name: report[name] for name in ("learning", "before", "after")}),
        file=sys.stderr,
    )
    assert report["good"]
    assert report["learning"]["ran"], report["learning"]
    assert report["learning"]["devices"] > 0
    before, after = report["before"], report["after"]
    assert before["seconds"] == pytest.approx(after["seconds"], abs=1.0)
    # The same looks at the same messages: what could be read is the same, but for the timing.
    assert after["read_online"] == pytest.approx(before["read_online"], rel=0.25)
    assert after["waste"] + after["loss"] < before["waste"] + before["loss"]
    assert (demo.alive, demo.left) == ([], [])


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_after_two_minutes_there_is_a_report_and_the_rest_follows(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--json")
    assert demo.process.stdout is not None
    first = json.loads(demo.process.stdout.readline())
    assert first["seconds"] < 135
    assert first["messages"]["delivered"] > 300
    assert first["before"]["forwarded"] > 0
    assert first["good"]
    last = first
    while not last["complete"]:
        last = json.loads(demo.process.stdout.readline())
    assert last["good"]
    assert last["learning"]["ran"], last["learning"]
    assert last["after"]["forwarded"] > 0
    demo.process.send_signal(signal.SIGTERM)
    code, _ = demo.wait()
    assert code == 0
    assert (demo.alive, demo.left) == ([], [])


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_stopped_while_spark_runs_nothing_goes_on(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--devices", "3")
    eventually(lambda: demo.said("learning"), "the pipeline runs", 120)
    eventually(lambda: len(demo.alive) >= 4, "a Java is there", 120)
    demo.process.send_signal(signal.SIGTERM)
    code, _ = demo.wait()
    assert code == 130
    assert (demo.alive, demo.left) == ([], [])
