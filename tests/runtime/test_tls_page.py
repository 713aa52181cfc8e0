"""The page about TLS (tls.md), executed: its commands make certificates that a gateway takes.

About `docs/how-to/tls.md` and `runtime/tls.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, blocks
from tests.runtime.processes import DEADLINE, ENVIRONMENT, GatewayProcess, eventually

PAGE = ROOT / "docs/how-to/tls.md"
FOUND = list(blocks(PAGE))

needs_curl = pytest.mark.skipif(
    shutil.which("curl") is None or shutil.which("openssl") is None, reason="needs curl and openssl"
)


def commands(block: Block) -> list[str]:
    joined = re.sub(r"\\\n\s*", "", block.text)
    return [line.removeprefix("$ ") for line in joined.splitlines()]


class Reader:
    """Somebody who types the commands of the page in an empty directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        tools = directory / "bin"
        tools.mkdir()
        lasthop = tools / "lasthop"
        lasthop.write_text(f'#!/bin/sh\nexec {sys.executable} -m lasthop "$@"\n')
        lasthop.chmod(0o755)
        self._environment = {**ENVIRONMENT, "PATH": f"{tools}:{os.environ['PATH']}"}

    def types(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.directory,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )


@needs_curl
def test_the_commands_of_the_page_make_a_client_that_is_known(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    (settings,) = [block for block in FOUND if block.language == "toml"]
    made = [block for block in FOUND if block.language == "console" and not block.words]
    (asked,) = [block for block in FOUND if block.words == ("gateway",)]
    for block in made:
        for command in commands(block):
            done = reader.types(command)
            assert done.returncode == 0, f"{command}: {done.stderr}"
            if "-subject" in command:
                assert done.stdout.strip() == "subject=CN=shop,O=Example"
    config = tmp_path / "lasthop.toml"
    text = re.sub(r'"(\w+\.pem)"', rf'"{tmp_path}/\1"', settings.text)
    # This gateway listens on this machine only, which would be open to everyone here.
    config.write_text(f'{text}\n[access]\nanonymous = "never"\n')
    with GatewayProcess(tmp_path / "data", "--config", str(config)) as up:
        (curl,) = commands(asked)
        curl = curl.replace("localhost:8080", up.http.removeprefix("https://"))
        curl = curl.replace("127.0.0.1", "localhost")
        done = reader.types(curl)
        assert done.returncode == 0, done.stderr
        assert reader.types(re.sub("--cert .* --key [^ ]*", "", curl)).returncode == 22  # 401

        # The authority is replaced by another of the same name.
        for command in commands(made[0])[:1]:
            assert reader.types(command).returncode == 0
        up.signal(signal.SIGHUP)
        eventually(lambda: reader.types(curl).returncode not in (0, 22), "shop is turned away")
        reloaded = up.errors.read_text().count("the TLS certificate was reloaded")
        assert reloaded == 1
