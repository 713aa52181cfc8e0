"""The small disk of chaos: full is full, and empty again it has room."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lasthop.runtime.chaos.small_disk import SmallDisk
from lasthop.runtime.failure import Failure

MIB = 1 << 20


async def test_a_full_disk_takes_nothing_until_it_is_emptied(tmp_path: Path) -> None:
    try:
        disk = await SmallDisk.mount(tmp_path, 2 * MIB)
    except Failure as failure:
        pytest.skip(str(failure))
    try:
        (disk.directory / "before").write_bytes(b"x" * MIB)
        await disk.fill()
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            (disk.directory / "more").write_bytes(b"x")
        disk.empty()
        (disk.directory / "more").write_bytes(b"x" * (MIB // 2))
        assert (disk.directory / "before").read_bytes() == b"x" * MIB
        assert os.listdir(tmp_path) == [], "nobody else sees it"
    finally:
        await disk.detach()


async def test_a_place_that_cannot_be_mounted_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="this system gives nobody a disk of their own: "):
        await SmallDisk.mount(tmp_path / "nowhere", MIB)
