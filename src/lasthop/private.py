"""Files and directories that only their owner may read, whatever the umask and the directory around
them allow: they hold people's messages and what is known of their habits."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FILE = 0o600
DIRECTORY = 0o700


def private_file(path: Path) -> None:
    """Make a file readable by its owner alone; create it empty if it does not exist.

    An existing file is not opened: closing it would end this process's locks on it, such as those
    of SQLite. An error is left to the code that opens the file next, which reports it.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE))
    tighten(path, FILE)


def private_database(path: Path) -> None:
    """Make an SQLite file readable by its owner alone, before anything connects to it. SQLite gives
    the files that it creates beside it the same mode; existing ones are tightened here."""
    private_file(path)
    for beside in ("-wal", "-shm", "-journal"):
        tighten(path.with_name(path.name + beside), FILE)


def private_directory(path: Path) -> None:
    """Create a directory that only its owner may use; missing parents are created as usual."""
    path.mkdir(mode=DIRECTORY, parents=True, exist_ok=True)
    tighten(path, DIRECTORY)


def tighten(path: Path, mode: int) -> None:
    """Set the mode of a file or directory if it exists and is ours. Errors are ignored: another
    owner protects their own files, and some file systems have no modes."""
    with suppress(OSError):
        path.chmod(mode)
