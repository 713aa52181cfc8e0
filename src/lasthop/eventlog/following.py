"""How a gateway hears that somebody follows its segments: by the age of a hidden file among them.

Sealing every ten seconds makes many small files, which only those want who wait for them.
"""

from __future__ import annotations

import os
from pathlib import Path

from lasthop.clock import SECOND, Micros

MARK = ".followed"

INTEREST: Micros = 60 * SECOND
"""How long a mark holds; who follows renews it several times in that."""


def follow(log: Path) -> None:
    """Say that the segments of a log, or of every log in a directory, are waited for."""
    logs = {day.parent for day in (*log.glob("date=*"), *log.glob("*/date=*"))} | {log}
    for place in logs:
        (place / MARK).touch()


def followed(log: Path, now: Micros) -> bool:
    """Whether somebody waits for the segments of this log."""
    try:
        marked = os.stat(log / MARK).st_mtime_ns // 1000
    except OSError:
        return False
    return marked > now - INTEREST
