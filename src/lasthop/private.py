"""Files and directories that are for their owner alone, whatever the umask and the directory around
them say: what people were sent, and what is known of their habits, is nobody else's to read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FILE = 0o600
DIRECTORY = 0o700


def private_file(path: Path) -> None:
    """Make a file for its owner alone, empty if it was not there.

    One that is there is not opened: closing it would end the locks that this process has on it, as
    SQLite's are. If none can be made, whoever opens it next says why.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE))
    tighten(path, FILE)


def private_database(path: Path) -> None:
    """Make a file of SQLite for its owner alone, before it is connected to. Those that SQLite makes
    beside it have its mode; those that are there already are tightened like it."""
    private_file(path)
    for beside in ("-wal", "-shm", "-journal"):
        tighten(path.with_name(path.name + beside), FILE)


def private_directory(path: Path) -> None:
    """Make a directory for its owner alone; parents that are missing are made as usual."""
    path.mkdir(mode=DIRECTORY, parents=True, exist_ok=True)
    tighten(path, DIRECTORY)


def tighten(path: Path, mode: int) -> None:
    """Let only the owner of something have it, if it is there and ours. What belongs to somebody
    else is theirs to protect, and some file systems have no modes."""
    with suppress(OSError):
        path.chmod(mode)
