"""The few file operations by which a segment is made, one method each, so that a test can fail or
interrupt every one of them."""

from __future__ import annotations

import os
from pathlib import Path

from lasthop.private import FILE, private_directory


class RealFiles:
    """The operations on the real file system; tests replace them."""

    def make_directory(self, path: Path) -> None:
        private_directory(path)

    def create(self, path: Path) -> int:
        """Open a new, empty file for writing and return its descriptor."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE)

    def write(self, file: int, data: bytes) -> None:
        """Append all of `data` to an open file."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]

    def sync(self, file: int) -> None:
        os.fsync(file)

    def close(self, file: int) -> None:
        os.close(file)

    def rename(self, old: Path, new: Path) -> None:
        old.rename(new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def sync_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
