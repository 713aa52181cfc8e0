"""A lock that lets only one gateway use a data directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from lasthop.errors import StoreError


class DirectoryLock:
    """An exclusive lock on a data directory. An open file holds it, so that the kernel releases it
    however the process ends."""

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 20).decode("ascii", "replace").strip()
            os.close(self._file)
            raise StoreError(
                "another gateway is using this data directory",
                directory=str(directory),
                pid=holder,
            ) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, b"%d\n" % os.getpid())

    def release(self) -> None:
        """Release the lock for the next gateway. Releasing twice is allowed."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
