"""Starts the processes of a run, measures them through /proc, and ends them by their own id."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

ROOT = Path(__file__).resolve().parents[2]
"""The checkout from which started processes import `bench` and `lasthop`."""

Said = TypeVar("Said", bound=msgspec.Struct)

_TICKS = os.sysconf("SC_CLK_TCK")


def sources(checkout: Path) -> str:
    """Return the PYTHONPATH for the packages of a checkout."""
    return f"{checkout / 'src'}{os.pathsep}{checkout / 'packages/xml/src'}"


class Failed(Exception):
    """A process of the run did not do what it was started for."""


def heed_termination() -> None:
    """Let SIGTERM end this process with an exception, so that the processes it started are ended
    too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def free_port() -> int:
    """Return a port that is not in use, for brokers that cannot choose one themselves."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def wait_for_port(port: int, process: subprocess.Popen[bytes], *, seconds: float = 120) -> None:
    """Wait until a process listens on a port."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failed(f"{process.args!r} ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise Failed(f"nothing listens on port {port} after {seconds:g} s")


def tree(pid: int) -> list[int]:
    """Return the ids of a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
    found = [pid]
    for member in found:
        found.extend(children.get(member, ()))
    return found


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process tree so far."""
    total = 0
    for member in tree(pid):
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def memory(pid: int) -> int:
    """Return the bytes of private memory of a process tree: anonymous pages, each counted once.

    Pages of files (libraries, databases) belong to the system, and how much of them is shared
    changes with whatever else is running.
    """
    total = 0
    for member in tree(pid):
        try:
            lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))
    return total * 1024


def end(process: subprocess.Popen[Any], *, sign: int = signal.SIGTERM) -> None:
    """End a process that we started, and its group if it leads one."""
    if process.poll() is None:
        leads = os.getpgid(process.pid) == process.pid
        send = os.killpg if leads else os.kill
        send(process.pid, sign)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            send(process.pid, signal.SIGKILL)
            process.wait()


def spawn(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a broker in a process group of its own; its output goes to a file."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )


class Child:
    """A Python process of the benchmark that gets orders and answers in lines of JSON."""

    def __init__(
        self, module: str, job: msgspec.Struct, *, log: Path, checkout: Path = ROOT
    ) -> None:
        self._name = f"{module} {type(job).__name__}"
        self._log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, msgspec.json.encode(job).decode()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=checkout,
                env={**os.environ, "PYTHONPATH": f"{sources(checkout)}{os.pathsep}{checkout}"},
                bufsize=0,
            )
        self._buffer = b""

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self.process.pid

    def tell(self, order: msgspec.Struct) -> None:
        """Send an order to the process."""
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")

    def hear(
        self, kind: type[Said], *, seconds: float = 60, while_running: Child | None = None
    ) -> Said:
        """Return the next answer of the process; fail at once if the process `while_running`, on
        which it depends, has ended."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            if time.monotonic() > deadline:
                raise Failed(f"{self._name} said nothing for {seconds:g} s")
            if while_running is not None:
                while_running.check()
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                data = self.process.stdout.read(1 << 20)
                if not data:
                    raise Failed(f"{self._name} ended: {self._last_words()}")
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return msgspec.json.decode(line, type=kind)

    def check(self) -> None:
        """Raise if the process has ended."""
        if self.process.poll() is not None:
            raise Failed(f"{self._name} ended: {self._last_words()}")

    def end(self) -> None:
        """Close the input of the process, which ends it; kill it if it does not end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            end(self.process)
        self.process.stdout.close()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no reason given"
