"""Finds out whether a store's files are what was written to them.

SQLite notices a good deal by itself, and not everything:

- Each frame of its log (`store.db-wal`) has a checksum, which covers the frames before it too. A
  torn end is not taken for a commit. But where a frame is damaged, SQLite silently ignores all that
  follows, commits that were confirmed included: `read_log` counts those.
- `PRAGMA integrity_check` follows the structure of the file: trees, cells, indices. The pages of
  the file have no checksum, so a body or a text that has changed in place passes.

Therefore every commit keeps a CRC-32 of what it writes once and never changes: its events, in one
page, and the bodies of its messages. The offsets of events follow one another without a gap, so
that no commit can be missing in the middle. Rows that later commits replace (deliveries, sessions,
devices) have no checksum; `lasthop log check` compares deliveries with the events that tell of
them. What was written before stores had checksums has none.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from lasthop.errors import StoreBroken
from lasthop.store.sqlite.connection import FILE_NAME, connect, store_errors
from lasthop.store.sqlite.faults import LOG_NAME
from lasthop.store.sqlite.migrations import check_version, version_of

NEWEST = 64
"""Pages of events and of messages that are checked whenever a store is opened: what was written
last is what a crash may have harmed, and reading it takes about a millisecond."""

MOST_NAMED = 5
"""Damaged pages that are named; the others are counted."""

_LOG_HEADER = struct.Struct(">IIIIIIII")
_FRAME_HEADER = struct.Struct(">IIIIII")
_BIG_ENDIAN = 0x377F0683
"""What the log begins with if its checksums read words in this order; one less: the other order."""

_PAGES = {
    "event_page": "the events from {} on have changed since they were written",
    "page": "the messages from {:016x} on have changed since they were written",
}


@dataclass(slots=True)
class LogState:
    """What SQLite's log has, and what of it counts."""

    commits: int = 0
    """Commits up to the first frame that is damaged or incomplete."""
    ignored: int = 0
    """Whole commits behind a damaged frame: they were written, and SQLite does not see them."""
    torn: int = 0
    """Bytes of an unfinished commit at the end, which nobody was told of."""


@dataclass(slots=True)
class FileCheck:
    """What is known of a store's files."""

    log: LogState
    problems: list[str] = field(default_factory=list)
    checked: int = 0
    """Pages of events and messages whose checksum fits."""
    unchecked: int = 0
    """Pages without a checksum: older than the checksums."""
    next_commit: int = 0
    next_event: int = 0


def check_files(directory: Path) -> FileCheck:
    """Read all of a store that may be in use; raise StoreBroken if it is none at all."""
    path = directory / FILE_NAME
    if not path.exists():
        raise StoreBroken("there is no store in this directory", directory=str(directory))
    found = FileCheck(read_log(directory / LOG_NAME))
    with store_errors(), closing(connect(path, mode="ro")) as connection:
        check_version(version_of(connection))
        # One state for all questions, although a gateway may be writing.
        connection.execute("BEGIN")
        try:
            _check_tables(connection, found)
        except sqlite3.DatabaseError as error:
            found.problems.append(f"the store's file cannot be read: {error}")
    return found


def check_newest(connection: sqlite3.Connection) -> None:
    """Raise StoreBroken if one of the newest commits has changed since it was written."""
    for table, text in _PAGES.items():
        for first, *_, fits in _pages(connection, table, f"ORDER BY first DESC LIMIT {NEWEST}"):
            if fits is False:
                problem = text.format(first)
                raise StoreBroken(f"{problem}; `lasthop store check` tells more")


def _check_tables(connection: sqlite3.Connection, found: FileCheck) -> None:
    for (line,) in connection.execute(f"PRAGMA integrity_check({MOST_NAMED})"):
        if line != "ok":
            found.problems.append(f"SQLite: {line}")
    ((found.next_commit, found.next_event),) = connection.execute(
        "SELECT next_commit, next_event FROM meta"
    )
    expected: int | None = None
    for first, count in _checked(connection, "event_page", found):
        if expected is not None and first != expected:
            found.problems.append(f"the events from {expected} to {first - 1} are missing")
        expected = first + count
    if expected is not None and expected != found.next_event:
        found.problems.append(
            f"the store counts {found.next_event} events, and the last that it has is"
            f" {expected - 1}"
        )
    for _ in _checked(connection, "page", found):
        pass


def _checked(
    connection: sqlite3.Connection, table: str, found: FileCheck
) -> Iterator[tuple[int, int]]:
    """Yield the first number and the count of each page, and note which pages have changed."""
    damaged: list[str] = []
    for first, count, fits in _pages(connection, table, "ORDER BY first"):
        found.checked += fits is True
        found.unchecked += fits is None
        if fits is False:
            damaged.append(_PAGES[table].format(first))
        yield first, count
    found.problems += damaged[:MOST_NAMED]
    if len(damaged) > MOST_NAMED:
        found.problems.append(f"and {len(damaged) - MOST_NAMED} more pages like that")


def _pages(
    connection: sqlite3.Connection, table: str, order: str
) -> Iterator[tuple[int, int, bool | None]]:
    content = "lines" if table == "event_page" else "body"
    has_checksums = any(
        row[1] == "crc" for row in connection.execute(f"PRAGMA table_info({table})")
    )
    crc = "crc" if has_checksums else "NULL"
    for first, count, known, data in connection.execute(
        f"SELECT first, count, {crc}, {content} FROM {table} {order}"
    ):
        fits = isinstance(data, bytes) and crc32(data) == known
        yield first, count, None if known is None else fits


def read_log(path: Path) -> LogState:
    """Read SQLite's log as SQLite does, and go on where it stops
    (https://www.sqlite.org/fileformat2.html#the_write_ahead_log)."""
    state = LogState()
    log = path.read_bytes() if path.exists() else b""
    if len(log) < _LOG_HEADER.size:
        return state
    magic, _, page_size, _, *salts, _, _ = _LOG_HEADER.unpack_from(log)
    words = ">" if magic == _BIG_ENDIAN else "<"
    sums = _wal_sums((0, 0), log[:24], words)
    start, intact, pending = _LOG_HEADER.size, True, 0
    while start + _FRAME_HEADER.size <= len(log):
        _, committed, *rest = _FRAME_HEADER.unpack_from(log, start)
        end = start + _FRAME_HEADER.size + page_size
        if rest[:2] != salts:
            break  # A remainder of the log before it was started over.
        if end > len(log):
            pending += len(log) - start
            break
        if intact:
            head, data = log[start : start + 8], log[start + _FRAME_HEADER.size : end]
            sums = _wal_sums(_wal_sums(sums, head, words), data, words)
            intact = list(sums) == rest[2:]
        pending += end - start
        if committed:
            state.commits += intact
            state.ignored += not intact
            pending = 0
        start = end
    state.torn = pending
    return state


def _wal_sums(sums: tuple[int, int], data: bytes, words: str) -> tuple[int, int]:
    first, second = sums
    values = struct.unpack(f"{words}{len(data) // 4}I", data)
    for one, other in zip(values[::2], values[1::2], strict=True):
        first = first + one + second & 0xFFFFFFFF
        second = second + other + first & 0xFFFFFFFF
    return first, second
