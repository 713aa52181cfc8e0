"""A disk that can stop at any operation, fail it, and forget what was not made durable."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from lasthop.eventlog.files import RealFiles


class Crash(BaseException):
    """The process is gone; nothing after this happens."""


class Disk(RealFiles):
    """Real files, with a memory of what a loss of power would take away; it stands for syncing."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.fault: Callable[[], BaseException | None] = lambda: None
        """Asked before every operation for what goes wrong with it."""
        self._open: dict[int, Path] = {}
        self._unsynced: set[Path] = set()
        self._made: list[Path] = []
        self._renamed: list[tuple[Path, Path]] = []
        self._removed: list[Path] = []

    def fail_at(self, operation: int, error: Callable[[], BaseException]) -> None:
        """Let the operation with this number, counted from now, go wrong once."""
        at = len(self.operations) + operation
        self.fault = lambda: error() if len(self.operations) == at + 1 else None

    def happen(self, name: str) -> None:
        """An operation begins."""
        self.operations.append(name)
        error = self.fault()
        if error is not None:
            if isinstance(error, Crash):
                self.fault = Crash
                for file in list(self._open):
                    os.close(file)
                self._open.clear()
            raise error

    def restart(self) -> None:
        """A new process: everything that was done is there."""
        self.fault = lambda: None

    def lose_power(self, random: Random) -> None:
        """Of everything not made durable, any part may be gone."""
        for old, new in reversed(self._renamed):
            if random.random() < 0.5 and new.exists():
                new.rename(old)
        for path in self._unsynced:
            if path.exists():
                size = path.stat().st_size
                os.truncate(path, random.randint(0, size))
                if random.random() < 0.5:
                    os.truncate(path, size)  # The length made it to the disk, the bytes did not.
        for path in self._removed:
            if random.random() < 0.5 and path.parent.exists():
                path.write_bytes(b'{"n":')
        for path in reversed(self._made):
            if random.random() < 0.5 and path.exists():
                shutil.rmtree(path)
        self._unsynced.clear()
        self._renamed.clear()
        self._removed.clear()
        self._made.clear()

    def make_directory(self, path: Path) -> None:
        self.happen("make_directory")
        if not path.exists():
            self._made.append(path)
        super().make_directory(path)

    def create(self, path: Path) -> int:
        self.happen("create")
        file = super().create(path)
        self._open[file] = path
        self._unsynced.add(path)
        return file

    def write(self, file: int, data: bytes) -> None:
        before = data[: len(data) * 2 // 3]
        path = self._open.get(file)
        try:
            self.happen("write")
        except BaseException:
            if path is not None:
                with path.open("ab") as torn:
                    torn.write(before)
            raise
        super().write(file, data)
        self._unsynced.add(self._open[file])

    def sync(self, file: int) -> None:
        self.happen("sync")
        self._unsynced.discard(self._open[file])

    def close(self, file: int) -> None:
        self.happen("close")
        super().close(file)
        self._open.pop(file, None)

    def rename(self, old: Path, new: Path) -> None:
        self.happen("rename")
        super().rename(old, new)
        self._renamed.append((old, new))
        if old in self._unsynced:
            self._unsynced.remove(old)
            self._unsynced.add(new)

    def remove(self, path: Path) -> None:
        self.happen("remove")
        if path.exists():
            self._removed.append(path)
        super().remove(path)
        self._unsynced.discard(path)

    def sync_directory(self, path: Path) -> None:
        self.happen("sync_directory")
        self._made = [made for made in self._made if made.parent != path]
        self._renamed = [pair for pair in self._renamed if pair[1].parent != path]
        self._removed = [removed for removed in self._removed if removed.parent != path]
