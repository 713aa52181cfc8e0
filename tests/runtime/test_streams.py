"""Streams through real processes: the page about them, the command line, and `kill -9`.

About `docs/how-to/streams.md` and `runtime/cli/stream.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.processes import DeviceProcess, GatewayProcess, eventually

PAGE = Path("docs/how-to/streams.md")

SIZE = int(os.environ.get("LASTHOP_STREAM_BYTES", str(8 << 20)))
"""The nightly run sends a hundred megabytes."""


def code() -> dict[str, Any]:
    """Everything that the page defines."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


code_in_repository = code()


@pytest.mark.timeout(120)
async def test_the_code_on_the_page_runs(
    up: GatewayProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = code_in_repository
    readings = [f"{n}\n".encode() * 100 for n in range(50)]
    following = asyncio.create_task(page["follow"](up.tcp))
    async with asyncio.timeout(60):
        await asyncio.to_thread(eventually, lambda: _knows(up, "tablet"), "it knows the tablet")
        await page["watch_a_patient"](up.tcp, readings)
        assert await following == b"".join(readings)
    up.push({"device": "tablet", "body": "x" * 50_000, "pull": True})
    async with asyncio.timeout(30):
        assert await page["look"](up.tcp) == [b"x" * 50_000]


def _knows(up: GatewayProcess, name: str) -> bool:
    return name in [row["name"] for row in up.get_json("/v1/devices")["devices"]]


def _stream(up: GatewayProcess, key: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = up.get_json(f"/v1/streams/{key}")
    except OSError:
        return {"position": -1, "taken": -1, "state": "unknown"}
    return found


def _send(up: GatewayProcess, file: Path, key: str) -> subprocess.Popen[bytes]:
    command = ["stream", "send", str(file), "--resume", key, "--url", up.http, "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "lasthop", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.timeout(1800)
def test_a_file_arrives_whole_across_kills_of_everything(tmp_path: Path) -> None:
    """The gateway dies at a third, the device at two thirds, and the sender with the gateway."""
    file, received = tmp_path / "film.bin", tmp_path / "received"
    file.write_bytes(random.Random(7).randbytes(SIZE))
    patience = 60 + SIZE / (200 << 10)
    inbox = tmp_path / "tablet.db"

    def tablet(up: GatewayProcess) -> DeviceProcess:
        options = ("--inbox", str(inbox), "--streams", str(received))
        return DeviceProcess(up.tcp, "tablet", tmp_path / "tablet.log", *options)

    up = GatewayProcess(tmp_path / "data")
    device = tablet(up)
    try:
        eventually(lambda: _knows(up, "tablet"), "the gateway knows the tablet")
        body = json.dumps({"to": "device:tablet", "title": "film"}).encode()
        status, answer = up.request("POST", "/v1/streams", body)
        assert status == 201, answer
        key = json.loads(answer)["id"]
        sender = _send(up, file, key)
        eventually(lambda: _stream(up, key)["taken"] > SIZE // 3, "a third is there", patience)
        up.kill()
        assert sender.wait(60) != 0
        up = up.again()
        assert _stream(up, key)["position"] >= SIZE // 3
        sender = _send(up, file, key)
        eventually(lambda: _stream(up, key)["taken"] > 2 * SIZE // 3, "two thirds", patience)
        device.kill()
        device = tablet(up)
        assert sender.wait(patience) == 0
        eventually(lambda: _stream(up, key)["taken"] == SIZE, "all is there", patience)
        whole = received / key
        eventually(lambda: whole.stat().st_size == SIZE, "all is in the file", patience)
        end = _stream(up, key)
        assert (end["state"], end["checksum"]) == (
            "complete",
            f"{zlib.crc32(file.read_bytes()):08x}",
        )
        assert _digest(whole) == _digest(file)
    finally:
        device.kill()
        up.kill()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
