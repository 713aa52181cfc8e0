"""What the README shows works as it stands there.

About `README.md`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import DEADLINE, ENVIRONMENT, GatewayProcess, eventually

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def commands_shown() -> list[list[str]]:
    """The commands in the table, with those that are named after a comma."""
    shown: list[list[str]] = []
    for cell in re.findall(r"^\| (`lasthop .*?) \|", README, re.MULTILINE):
        first, *others = re.findall(r"`(.+?)`", cell)
        words = [word for word in first.split()[1:] if word.islower()]
        shown += [words, *([*words[:-1], other] for other in others)]
    return shown


@pytest.mark.parametrize("path", commands_shown(), ids=" ".join)
def test_every_command_of_the_table_exists(lasthop: Lasthop, path: list[str]) -> None:
    assert f"Usage: lasthop {' '.join(path)}" in lasthop(*path, "--help").out


def test_the_example_for_devices_gets_a_message(up: GatewayProcess, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    code = code.replace("tcp://127.0.0.1:7300", up.tcp)
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=ENVIRONMENT,
        text=True,
    ) as example:
        try:
            eventually(
                lambda: any(d["subscriptions"] for d in up.get_json("/v1/devices")["devices"]),
                "the example has subscribed",
                DEADLINE,
            )
            up.request("POST", "/news", b"hello, world")
            assert example.stdout is not None
            assert example.stdout.readline().endswith(" hello, world\n")
        finally:
            example.kill()
