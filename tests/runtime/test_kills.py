"""Gateway and device are killed at random under load; nothing accepted is lost, doubled or out of
order in the device's output file.

`KILLS=50 SEED=7` in the environment make the run longer, and repeat one.

About `runtime/serve.py` and `device/`.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import DeviceProcess, GatewayProcess, eventually
from tests.runtime.publishers import Publisher

KILLS = int(os.environ.get("KILLS", "6"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
PUBLISHERS = 3

CALM = (0.1, 1.2)
"""Seconds between two blows: from the middle of a start to some hundred messages later."""


@pytest.mark.slow
@pytest.mark.timeout(120 + 15 * KILLS)
def test_nothing_is_lost_doubled_or_misordered_across_kills(
    tmp_path: Path, lasthop: Lasthop, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        accepted = punish(tmp_path)
        assert "the log is whole" in lasthop("log", "check", "--data", str(tmp_path / "data")).out
    except BaseException as error:
        error.add_note(f"to try this again: SEED={SEED} KILLS={KILLS}")
        raise
    with capsys.disabled():
        print(f"\nSEED={SEED}: {accepted} messages survived {KILLS} blows")


def punish(tmp_path: Path) -> int:
    """Let messages flow while gateway and device are killed; returns how many there were."""
    rng = random.Random(SEED)
    output = tmp_path / "output.jsonl"
    gateway = GatewayProcess(tmp_path / "data")
    token = json.loads(gateway.request("POST", "/v1/devices", b'{"name": "phone"}')[1])["token"]

    def start_device() -> DeviceProcess:
        options = ["--token", token, "--inbox", str(tmp_path / "inbox.db")]
        return DeviceProcess(
            gateway.tcp, "phone", tmp_path / "device.log", *options, "--output", str(output)
        )

    device = start_device()
    publishers = [
        Publisher(f"p{n}", gateway.http.removeprefix("http://"), "phone") for n in range(PUBLISHERS)
    ]
    for publisher in publishers:
        publisher.start()
    try:
        for _ in range(KILLS):
            time.sleep(rng.uniform(*CALM))
            blow = rng.choice(["gateway", "gateway", "device", "device", "both", "terminate"])
            if blow in ("device", "both"):
                device.kill()
            if blow in ("gateway", "both"):
                gateway.kill()
            if blow == "terminate":
                assert gateway.terminate() == 0
            if not gateway.running:
                gateway = gateway.again()
            if not device.running:
                device = start_device()
        for publisher in publishers:
            publisher.stop()
        for publisher in publishers:
            publisher.join()
        accepted = sum(len(publisher.accepted) for publisher in publishers)
        eventually(
            lambda: output.exists() and output.read_bytes().count(b"\n") >= accepted,
            f"the device has all {accepted} messages",
        )
        assert device.terminate() == 0
        assert gateway.terminate() == 0
    finally:
        for publisher in publishers:
            publisher.stop()
        device.kill()
        gateway.kill()

    lines = [json.loads(line) for line in output.read_text().splitlines()]
    by_publisher: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        by_publisher[line["body"].partition("-")[0]].append(line["body"])
    for publisher in publishers:
        assert by_publisher[publisher.name] == publisher.accepted
    ids = [line["id"] for line in lines]
    assert ids == sorted(set(ids)), "the order of acceptance is the order of delivery"
    return accepted
