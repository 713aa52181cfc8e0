"""A store on a disk that is hardly larger than what it has: its log makes room in time.

The disk is seen only in a namespace of its own, so each check runs in a process that joins it.

About `store/sqlite/store.py`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from lasthop.errors import StoreFull
from lasthop.runtime.chaos.small_disk import SmallDisk, join, take_all_room
from lasthop.runtime.failure import Failure
from lasthop.store.commit import Commit, MemoryRow
from lasthop.store.sqlite import SqliteStore
from tests.store.making import Maker

MIB = 1 << 20
DISK = 16 * MIB


def rewrites_do_not_fill_it(disk: Path) -> None:
    make = Maker()
    with closing(SqliteStore(disk / "data")) as store:
        store.open()
        for n in range(400):
            store.apply(remembered(make, n))
    with closing(SqliteStore(disk / "data")) as store:
        assert store.open().next_commit == 401


def others_fill_it(disk: Path) -> None:
    make = Maker()
    with closing(SqliteStore(disk / "data")) as store:
        store.open()
        store.apply(remembered(make, 0))
    with closing(SqliteStore(disk / "data")) as store:
        store.open()
        for n in range(5):
            store.apply(remembered(make, n))
        take_all_room(disk)
        for n in range(100):
            store.apply(remembered(make, n))


def nothing_fits(disk: Path) -> None:
    make = Maker()
    with closing(SqliteStore(disk / "data")) as store:
        store.open()
        ballast = take_all_room(disk)
        large = make.accepted(b"x" * MIB)
        for _ in range(2):
            with pytest.raises(StoreFull, match="no room left for the store"):
                store.apply(large)
        ballast.unlink()
        store.apply(large)
        assert store.counts().messages == 1


CHECKS: dict[str, Callable[[Path], None]] = {
    check.__name__: check for check in (rewrites_do_not_fill_it, others_fill_it, nothing_fits)
}


def remembered(make: Maker, n: int) -> Commit:
    """Make a commit that writes the same 100 kB of the store anew."""
    return make.commit(memories=[MemoryRow(1, "same", b"%9d" % n * 11_000)])


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[SmallDisk]:
    try:
        disk = await SmallDisk.mount(tmp_path, DISK)
    except Failure as failure:
        pytest.skip(str(failure))
    yield disk
    await disk.detach()


@pytest.mark.parametrize("check", CHECKS)
async def test_on_a_small_disk(disk: SmallDisk, tmp_path: Path, check: str) -> None:
    command = [sys.executable, "-m", __name__, str(disk.holder), str(tmp_path), check]
    outcome = await asyncio.to_thread(
        subprocess.run, command, check=False, capture_output=True, text=True
    )
    assert outcome.returncode == 0, outcome.stderr


if __name__ == "__main__":
    join(int(sys.argv[1]))
    CHECKS[sys.argv[3]](Path(sys.argv[2]))
