"""A gateway for an example: `lasthop up` in a process of its own, with everything in one place."""

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
    """Where a gateway is."""

    tcp: str
    http: str
    websocket: str
    directory: Path
    """For whatever an example wants to keep."""


@contextmanager
def a_gateway(configuration: str = "") -> Iterator[Gateway]:
    """A gateway with these settings, on ports of its own; it ends with the example."""
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
