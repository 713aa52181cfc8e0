"""`lasthop device run --send` as users start it: two links, limits, a word about each line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import ENVIRONMENT, LASTHOP, GatewayProcess

PREFERENCES = {
    "links": [
        {"label": "wifi", "tariff": {}, "latency": 5_000},
        {"label": "mno", "tariff": {"per_unit": 1000}, "latency": 50_000},
    ],
    "queues": [{"name": "", "weights": {"price": 1, "energy": 0, "latency": 0, "coverage": 0}}],
    "limits": [{"amount": 3, "measure": "messages", "period": "day"}],
}


def run(*arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LASTHOP, "device", "run", "--json", *arguments],
        input=lines,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
    )


def said(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_lines_are_sent_within_limits_that_outlive_the_process(tmp_path: Path) -> None:
    preferences, inbox = tmp_path / "wishes.json", str(tmp_path / "inbox")
    preferences.write_text(json.dumps(PREFERENCES))
    with GatewayProcess(tmp_path / "data") as up:
        device = ["--url", up.tcp, "--name", "phone", "--link", "mno", "--inbox", inbox]
        sending = [*device, "--preferences", str(preferences), "--send", "topic:readings"]
        first = run(*sending, lines="one\ntwo\n")
        assert first.returncode == 0, first.stderr
        told = said(first.stdout)
        assert [line["link"] for line in told if "accepted" in line] == ["mno", "mno"]
        whys = [line["why"][-1] for line in told if "accepted" in line]
        assert all("mno has the lowest cost" in why for why in whys)

        second = run(*sending, "--send-expires", "2", lines="three\nfour\n")
        assert second.returncode == 0, second.stderr
        told = said(second.stdout)
        assert len([line for line in told if "accepted" in line]) == 1
        full = "3 of 3 messages per day used"
        held = {line["held"] for line in told if "held" in line and full in line["why"][0]}
        (refused,) = (line for line in told if "refused" in line)
        assert refused["reason"] == "expired"
        assert held == {refused["refused"]}


def test_a_second_link_is_joined_and_used(tmp_path: Path) -> None:
    preferences = tmp_path / "wishes.json"
    queue = {"name": "dear", "links": ["mno"]}
    preferences.write_text(json.dumps(PREFERENCES | {"queues": [queue], "limits": []}))
    with GatewayProcess(tmp_path / "data") as up:
        device = ["--url", up.tcp, "--name", "phone", "--link", "wifi"]
        joined = ["--join", f"mno={up.websocket}", "--preferences", str(preferences)]
        ended = run(*device, *joined, "--send", "topic:t", "--send-queue", "dear", lines="a\n")
        assert ended.returncode == 0, ended.stderr
        (accepted,) = (line for line in said(ended.stdout) if "accepted" in line)
        assert accepted["link"] == "mno"


def test_what_is_wrong_is_said_in_one_line(lasthop: Lasthop, tmp_path: Path) -> None:
    broken = tmp_path / "wishes.json"
    broken.write_text('{"limits": [{"amount": -1, "measure": "bytes", "period": "day"}]}')
    for arguments, words in (
        (["--preferences", str(tmp_path / "none")], "cannot read"),
        (["--preferences", str(broken)], "a limit cannot be negative"),
        (["--join", "mno"], "--join takes LABEL=URL"),
        (["--send-queue", "bulk"], "can only be used with --send"),
        (["--send", "topic:t", "--read", "1"], "--read and --send cannot be used together"),
    ):
        device = ("device", "run", "--json", "--url", "tcp://127.0.0.1:9", "--name", "phone")
        assert words in lasthop(*device, *arguments, fails=True).error
