"""What a loss of power leaves of a store: the file, and a log that ends anywhere.

SQLite appends every commit to the log (`store.db-wal`) and syncs it before the commit counts. A
crash may therefore leave any beginning of the log that includes the confirmed commits, and a torn
end behind it. Used by tests and by rehearsals with a real store.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import NamedTuple

from lasthop.store.sqlite.connection import FILE_NAME

LOG_NAME = FILE_NAME + "-wal"

# https://www.sqlite.org/fileformat2.html#the_write_ahead_log
_HEADER = struct.Struct(">IIIIIIII")
_FRAME = struct.Struct(">IIIIII")


class Frame(NamedTuple):
    """One page in the log, which ends at byte `end`; `commits` says whether it is the last of a
    commit."""

    end: int
    commits: bool


def log_frames(directory: Path) -> list[Frame]:
    """Return the frames of the log since it was last started over, in order."""
    log = (directory / LOG_NAME).read_bytes()
    if len(log) < _HEADER.size:
        return []
    _, _, page_size, _, *salts, _, _ = _HEADER.unpack_from(log)
    frames: list[Frame] = []
    start = _HEADER.size
    while start + _FRAME.size + page_size <= len(log):
        _, size_after_commit, *frame_salts, _, _ = _FRAME.unpack_from(log, start)
        if frame_salts != salts:
            break
        start += _FRAME.size + page_size
        frames.append(Frame(start, commits=size_after_commit != 0))
    return frames


def copy_after_crash(directory: Path, into: Path, *, keep_bytes: int | None = None) -> None:
    """Copy what a crash at this moment leaves: the file, and `keep_bytes` of the log, or all of it.

    The store may be open, as long as nothing is being written.
    """
    into.mkdir(parents=True)
    shutil.copyfile(directory / FILE_NAME, into / FILE_NAME)
    if (directory / LOG_NAME).exists():
        shutil.copyfile(directory / LOG_NAME, into / LOG_NAME)
        cut_log(into, keep_bytes=keep_bytes)


def cut_log(directory: Path, *, keep_bytes: int | None) -> None:
    """Cut off the end of the log of a store that is not open."""
    if keep_bytes is not None:
        with (directory / LOG_NAME).open("r+b") as log:
            log.truncate(keep_bytes)


def tear_log(directory: Path, *, at: int, garbage: bytes) -> None:
    """Overwrite part of the log of a store that is not open, like sectors that were never
    written."""
    with (directory / LOG_NAME).open("r+b") as log:
        log.seek(at)
        log.write(garbage)
