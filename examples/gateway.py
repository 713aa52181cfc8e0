"""A gateway for an example: `lasthop up` in a process of its own, with its files in a temporary
directory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory


@dataclass(frozen=True, slots=True)
class Gateway:
    """The addresses of a running gateway, and the directory of its example."""

    tcp: str
    http: str
    websocket: str
    directory: Path
    """A temporary directory for the files of the example, such as inboxes."""


@contextmanager
def a_gateway(configuration: str = "") -> Iterator[Gateway]:
    """Run a gateway with these settings, on free ports; end it with the example."""
    with TemporaryDirectory(prefix="lasthop-example-") as name:
        directory = Path(name)
        settings = directory / "lasthop.toml"
        settings.write_text(configuration)
        command = [sys.executable, "-m", "lasthop", "up", "--json", "--config", str(settings)]
        command += ["--data", str(directory / "data")]
        command += ["--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0"]
        with (directory / "gateway.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError((directory / "gateway.log").read_text())
            places = json.loads(line)
            yield Gateway(places["tcp"], places["http"], places["websocket"], directory)
        finally:
            process.terminate()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
