"""How a gateway hears that somebody follows its segments: by the age of a hidden file among them,
in which it stands how soon they want them.

Sealing every few seconds makes many small files, which only those want who wait for them.
"""

from __future__ import annotations

import os
from pathlib import Path

from lasthop.clock import SECOND, Micros

MARK = ".followed"

INTEREST: Micros = 60 * SECOND
"""How long a mark holds; who follows renews it several times in that."""


PROMPT: Micros = 10 * SECOND
"""How old a segment may become while somebody follows who is in no particular hurry."""

SOONEST: Micros = SECOND


def follow(log: Path, *, within: Micros = PROMPT) -> None:
    """Say that the segments of a log, or of every log in a directory, are waited for, and that an
    event should be in one `within` so long."""
    logs = {day.parent for day in (*log.glob("date=*"), *log.glob("*/date=*"))} | {log}
    for place in logs:
        (place / MARK).write_text(str(within))


def followed(log: Path, now: Micros) -> Micros | None:
    """How soon somebody wants what happens to be in the segments of this log; None: nobody does."""
    try:
        marked = os.stat(log / MARK).st_mtime_ns // 1000
        wanted = (log / MARK).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    if marked <= now - INTEREST:
        return None
    # Whatever else is in the file, somebody follows.
    return max(SOONEST, int(wanted)) if wanted.isascii() and wanted.isdigit() else PROMPT
