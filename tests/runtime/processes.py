"""Real processes: a gateway and devices as a user starts them, ended in every possible way."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

DEADLINE = 60.0
"""Seconds until a condition that must come true has failed; machines under test are busy."""

LASTHOP = [sys.executable, "-m", "lasthop"]

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("LASTHOP_")}


def eventually(condition: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, f"in {deadline:g} s it did not come true that {what}"
        time.sleep(0.01)


class Process:
    """A `lasthop` command that goes on; what it says on standard error goes to a file."""

    def __init__(self, arguments: list[str], errors: Path, **environment: str) -> None:
        self.errors = errors
        with errors.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*LASTHOP, *arguments],
                stdout=subprocess.PIPE,
                bufsize=0,  # So that `select` knows of everything that there is to read.
                stderr=stderr,
                env=ENVIRONMENT | environment,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def line(self) -> bytes:
        """The next line of its output; fails when it ends before."""
        output = self._process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], DEADLINE)
        line = output.readline() if ready else b""
        assert line, f"no output; it said: {self.errors.read_text()}"
        return line

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Its exit code; what it had left to say is not read."""
        code = self._process.wait(DEADLINE)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

    def terminate(self) -> int:
        """Ask it to end, and wait."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it at this instant."""
        self._process.kill()
        self.wait()


class MarkedCommand:
    """A `lasthop` command whose processes, all of them, can be told by a mark in their environment,
    and whose temporary files are in a place of their own."""

    def __init__(self, tmp_path: Path, *arguments: str) -> None:
        self._mark = f"COMMAND_UNDER_TEST={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        self._tmp = tmp_path / "tmp"
        self._tmp.mkdir()
        self.errors = tmp_path / "errors"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*LASTHOP, *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=ENVIRONMENT | {name: value, "TMPDIR": str(self._tmp)},
            )

    def wait(self, seconds: float = DEADLINE) -> tuple[int, str]:
        """Its exit code and output."""
        output, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, output.decode()

    @property
    def alive(self) -> list[int]:
        """Processes with the mark."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
            except OSError:
                continue
        return found

    @property
    def left(self) -> list[str]:
        """Files that it has not removed."""
        return os.listdir(self._tmp)

    def said(self, text: str) -> bool:
        return text in self.errors.read_text()


class GatewayProcess(Process):
    """`lasthop up` on ports of its own, which stay the same across restarts in `data`."""

    def __init__(self, data: Path, *options: str, http: str | None = None, tcp: str | None = None):
        arguments = ["up", "--json", "--data", str(data)]
        arguments += ["--http", http or "127.0.0.1:0", "--tcp", tcp or "127.0.0.1:0", *options]
        super().__init__(arguments, data.with_name(f"{data.name}.gateway.log"))
        self.data = data
        self._options = options
        self.places: dict[str, Any] = json.loads(self.line())
        self.http: str = self.places["http"]
        self.tcp: str = self.places["tcp"]
        self.websocket: str = self.places["websocket"] or ""

    def again(self) -> Self:
        """Start anew where the last one was, once that has ended."""
        return type(self)(
            self.data,
            *self._options,
            http=self.http.removeprefix("http://"),
            tcp=self.tcp.removeprefix("tcp://"),
        )

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        """One HTTP request."""
        connection = http.client.HTTPConnection(self.http.removeprefix("http://"), timeout=DEADLINE)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def get_json(self, path: str) -> Any:
        status, body = self.request("GET", path)
        assert status == 200, body
        return json.loads(body)

    def push(self, message: dict[str, object], **headers: str) -> str:
        """Publish over REST; returns the id."""
        status, body = self.request("POST", "/v1/messages", json.dumps(message).encode(), **headers)
        assert status in (200, 202), body
        return str(json.loads(body)["id"])


class DeviceProcess(Process):
    """`lasthop device run`, which prints a line of JSON for every message."""

    def __init__(
        self, url: str, name: str, errors: Path, *options: str, **environment: str
    ) -> None:
        arguments = ["device", "run", "--json", "--url", url, "--name", name, *options]
        super().__init__(arguments, errors, **environment)


@contextmanager
def gateway(data: Path, *options: str) -> Iterator[GatewayProcess]:
    """A gateway that is killed at the end, if it is still there."""
    with GatewayProcess(data, *options) as process:
        yield process
