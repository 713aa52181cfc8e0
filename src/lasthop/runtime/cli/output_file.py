"""A file to which every line is written exactly once, in order, even if the process is killed.

A line is written before the transaction that finishes its message commits, and the length of the
file is part of that transaction. Bytes beyond that length at the start were never committed: they
are cut off, and their messages are delivered again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from lasthop.runtime.failure import Failure

NOTE = "output.length"


class Notes(Protocol):
    """The interface of an inbox's transaction that reads and writes values by name."""

    def get(self, name: str) -> bytes | None: ...

    def put(self, name: str, value: bytes) -> None: ...


class OutputFile:
    """An append-only file whose length is stored in an inbox."""

    def __init__(self, path: Path, notes: Notes, *, sync: bool = False) -> None:
        """Open the file, and cut off lines that were not committed. With `sync` every line is on
        the disk before its message is finished, which also survives a loss of power, and is much
        slower."""
        self._sync = sync
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._length = int(notes.get(NOTE) or b"0")
        there = os.fstat(self._file).st_size
        if there < self._length:
            os.close(self._file)
            raise Failure(
                f"{path} has {there} bytes, but {self._length} were written to it: it was"
                " changed, or the machine lost power; restore the file or use another inbox"
            )
        os.ftruncate(self._file, self._length)

    def append(self, line: bytes, notes: Notes) -> None:
        """Write a line as part of a transaction. If the transaction is undone, the next line
        overwrites this one."""
        length = int(notes.get(NOTE) or b"0")
        if length != self._length:
            os.ftruncate(self._file, length)
        rest = memoryview(line)
        while rest:
            written = os.pwrite(self._file, rest, length)
            rest = rest[written:]
            length += written
        if self._sync:
            os.fdatasync(self._file)
        notes.put(NOTE, b"%d" % length)
        self._length = length

    def close(self) -> None:
        os.close(self._file)
