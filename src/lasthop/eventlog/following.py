"""Tells a gateway that its segments are being followed: by the age of a hidden file among them,
whose content says how soon events are wanted. Sealing every few seconds makes many small files, so
it is only done while somebody follows.
"""

from __future__ import annotations

import os
from pathlib import Path

from lasthop.clock import SECOND, Micros

MARK = ".followed"

INTEREST: Micros = 60 * SECOND
"""How long a mark is valid; those who follow renew it several times in that time."""


PROMPT: Micros = 10 * SECOND
"""How old a segment may become while somebody follows who asks for no particular time."""

SOONEST: Micros = SECOND


def follow(log: Path, *, within: Micros = PROMPT) -> None:
    """Mark the segments of a log, or of every log in a directory, as followed, so that an event is
    in a segment `within` this time."""
    logs = {day.parent for day in (*log.glob("date=*"), *log.glob("*/date=*"))} | {log}
    for place in logs:
        (place / MARK).write_text(str(within))


def followed(log: Path, now: Micros) -> Micros | None:
    """Return how soon events are wanted in the segments of this log; None if nobody follows it."""
    try:
        marked = os.stat(log / MARK).st_mtime_ns // 1000
        wanted = (log / MARK).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    if marked <= now - INTEREST:
        return None
    # The mark counts, whatever else is in the file.
    return max(SOONEST, int(wanted)) if wanted.isascii() and wanted.isdigit() else PROMPT
