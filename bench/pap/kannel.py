"""Runs Kannel's gateway from Debian: bearerbox and wapbox, in a directory and at an address of its
own.

Nothing of it is durable: pushes are held in memory. Its datagrams leave from fixed ports, so it
gets a loopback address that no other process uses.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import run

from bench.hop.processes import end, free_port, spawn, wait_for_port

PLACES = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"

CONFIGURATION = """\
group = core
admin-port = {admin}
admin-password = bench
wapbox-port = {wapbox}
wdp-interface-name = "{interface}"
log-level = 4
box-deny-ip = "*.*.*.*"
box-allow-ip = "127.0.0.1"

group = wapbox
bearerbox-host = 127.0.0.1
log-level = 4

group = ppg
ppg-url = /wappush
ppg-port = {ppg}
concurrent-pushes = 1000
users = 1024
trusted-pi = true
ppg-allow-ip = "127.0.0.1"
"""


@dataclass(frozen=True, slots=True)
class Kannel:
    """A running gateway of Kannel."""

    version: str
    port: int
    path: str
    pids: tuple[int, int]


def installed() -> bool:
    """Whether Debian's package of Kannel is installed."""
    return all(shutil.which(name, path=PLACES) for name in ("bearerbox", "wapbox"))


@contextmanager
def kannel(directory: Path, *, pinned: list[str]) -> Iterator[Kannel]:
    """Run both programs; the words of `pinned` are put in front of their commands."""
    directory.mkdir(parents=True)
    admin, wapbox, ppg = free_port(), free_port(), free_port()
    interface = f"127.66.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}"
    file = directory / "kannel.conf"
    file.write_text(CONFIGURATION.format(admin=admin, wapbox=wapbox, ppg=ppg, interface=interface))
    bearer = spawn([*pinned, _program("bearerbox"), "-v", "4", str(file)], log=directory / "log")
    try:
        wait_for_port(wapbox, bearer)
        box = spawn([*pinned, _program("wapbox"), "-v", "4", str(file)], log=directory / "log")
        try:
            wait_for_port(ppg, box)
            yield Kannel(_version(), ppg, "/wappush", (bearer.pid, box.pid))
        finally:
            end(box)
    finally:
        end(bearer)


def _program(name: str) -> str:
    found = shutil.which(name, path=PLACES)
    assert found is not None
    return found


def _version() -> str:
    query = ["dpkg-query", "--show", "--showformat=${Version}", "kannel"]
    return run(query, capture_output=True, text=True, check=False).stdout or "unknown"
