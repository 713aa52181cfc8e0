"""Checks the machine and its Python."""

from __future__ import annotations

import resource
import sqlite3
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from lasthop.runtime.doctor.finding import Finding, broken, could_be_better, good
from lasthop.store.sqlite.connection import OLDEST_SQLITE

PYTHONS = ((3, 11), (3, 14))
"""The supported versions of Python: at least the first, and below the second."""

MANY_FILES = 4096
"""A limit of open files below this number is reported: each connected device needs one open file,
so that a thousand devices reach the usual limit of 1024."""

SKEW = 60.0
"""Seconds by which a file may seem to come from the future before the clock is considered wrong."""


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Check that this version of Python is supported."""
    shown = ".".join(map(str, version))
    if PYTHONS[0] <= version[:2] < PYTHONS[1]:
        return good("python", shown)
    return broken("python", shown, "use Python 3.11, 3.12 or 3.13")


def sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Finding:
    """Check that SQLite is new enough for the store."""
    shown, oldest = (".".join(map(str, numbers)) for numbers in (version, OLDEST_SQLITE))
    if version >= OLDEST_SQLITE:
        return good("sqlite", shown)
    return broken("sqlite", shown, f"use a Python that has SQLite {oldest} or later")


def event_loop() -> Finding:
    """Check that uvloop, the fast event loop, is installed."""
    if find_spec("uvloop") is not None:
        return good("uvloop", "installed")
    return broken("uvloop", "not installed", "pip install uvloop")


def open_files(limit: int | None = None) -> Finding:
    """Check how many devices can be connected at once."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
    if soft == resource.RLIM_INFINITY or soft >= MANY_FILES:
        return good("open files", "no limit" if soft == resource.RLIM_INFINITY else f"{soft}")
    return could_be_better(
        "open files",
        f"{soft}, which is at most as many devices at once",
        "ulimit -n 65536, or LimitNOFILE=65536 in the systemd unit",
    )


def clock(data: Path, now: float | None = None) -> Finding:
    """Check that the clock is not behind the files written here before, since deadlines depend on
    it."""
    now = time.time() if now is None else now
    try:
        newest = max((path.stat().st_mtime for path in data.iterdir()), default=0.0)
    except OSError:
        newest = 0.0
    if newest <= now + SKEW:
        return good("clock", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)))
    return broken(
        "clock",
        f"{newest - now:.0f} s behind the files in {data}",
        "set the clock, best by NTP (timedatectl set-ntp true)",
    )
