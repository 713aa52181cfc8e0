"""A small disk that can be filled: a tmpfs in namespaces of its own, which need no privileges.

A holder process holds the namespaces, so that the disk outlives the gateway; whoever is started
with its process id sees the disk (`launcher`). A full tmpfs says ENOSPC like any full disk.

    python -m lasthop.runtime.chaos.small_disk PARENT_PID DIRECTORY BYTES
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import signal
import sys
from pathlib import Path

from lasthop.runtime.demo.child import follow
from lasthop.runtime.demo.children import ChildProcess

NEW_MOUNTS = 0x00020000
NEW_USERS = 0x10000000
"""CLONE_NEWNS and CLONE_NEWUSER of Linux; Python has names for them from 3.12 on."""

FILLING = "filling"

PIECE = 64 << 20
"""The most bytes that are taken at once."""


class SmallDisk:
    """A disk in memory, mounted at a directory for those who join the holder's namespaces."""

    def __init__(self, holder: ChildProcess, directory: Path) -> None:
        self._holder = holder
        self._directory = Path(f"/proc/{holder.pid}/root{directory}")

    @classmethod
    async def mount(cls, directory: Path, size: int) -> SmallDisk:
        """Make a disk of so many bytes at a directory that exists; raise `Failure` where namespaces
        are not allowed."""
        module = "lasthop.runtime.chaos.small_disk"
        arguments = (str(os.getpid()), str(directory), str(size))
        holder = await ChildProcess.start_program(
            sys.executable, "-m", module, *arguments, name="the small disk"
        )
        await holder.line()
        return cls(holder, directory)

    @property
    def holder(self) -> int:
        """The process id of the holder."""
        return self._holder.pid

    @property
    def directory(self) -> Path:
        """The disk as it is seen from outside its namespaces."""
        return self._directory

    async def fill(self) -> None:
        """Take all room that is left."""
        await asyncio.to_thread(take_all_room, self._directory)

    def empty(self) -> None:
        """Delete what fills the disk, so that there is room again."""
        (self._directory / FILLING).unlink(missing_ok=True)

    async def detach(self) -> None:
        """End the holder; the disk goes with the last process that uses it."""
        await self._holder.stop()


def take_all_room(directory: Path) -> Path:
    """Fill the disk that a directory is on; return the file that takes the room."""
    filling = directory / FILLING
    with filling.open("ab") as file:
        piece = PIECE
        while piece:
            try:
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), piece)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                piece //= 2
    return filling


def join(holder: int) -> None:
    """Enter the namespaces of a holder."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name, kind in (("user", NEW_USERS), ("mnt", NEW_MOUNTS)):
        with open(f"/proc/{holder}/ns/{name}", "rb") as namespace:
            _check(libc.setns(namespace.fileno(), kind))


def _keep(parent: int, directory: str, size: int) -> None:
    """Mount the disk and stay as long as the parent, so that the disk stays."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    _check(libc.unshare(NEW_USERS | NEW_MOUNTS))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    options = f"size={size},mode=0700".encode()
    _check(libc.mount(b"tmpfs", directory.encode(), b"tmpfs", 0, options))
    # After the change of credentials, which would take the death signal back.
    follow(parent)
    print("mounted", flush=True)
    signal.sigwait({signal.SIGTERM})


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        _keep(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    except (OSError, AttributeError) as error:
        sys.exit(f"this system gives nobody a disk of their own: {error}")
