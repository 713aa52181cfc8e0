"""The lake: the directories of the tables, and how one is replaced in a single step.

    lake/bronze/events/date=2026-11-15/batch=7/*.parquet     as written
    lake/bronze/quarantine/batch=7/*.parquet                 lines that are not events
    lake/silver/<table>/date=2026-11-15/*.parquet
    lake/gold/<table>/[date=2026-11-15/]*.parquet
    lake/state.json                                          what silver and gold were made from
    lake/checkpoint/                                         how far the log has been read

All of it is plain Parquet that any tool can read, on a file system that the driver and the
executors share. Names that begin with a dot are work in progress.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession, functions as fn
from pyspark.sql.types import DateType, StructType

from lasthop.errors import Conflict
from lasthop.pipeline.stores import LogOwner

_AT_FDCWD = -100
_EXCHANGE = 2


FORMAT = 2
"""The form of silver and gold; tables of another form are made again from bronze."""


class LakeState(msgspec.Struct):
    """What silver was last made from, and the number of runs so far."""

    runs: int = 0
    format: int = 0
    """The form of the tables; 0 if there are none, or if an earlier version has made them."""
    owners: list[LogOwner] = []
    """The gateways whose events bronze has."""
    bronze: dict[str, list[str]] = {}
    """The files of bronze that silver was made from, by date."""
    pending: list[str] = []
    """Dates that a run began to work on and did not finish."""


class Lake:
    """The tables of the pipeline, under one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def path(self, layer: str, table: str) -> Path:
        """Return the directory of a table in a layer (bronze, silver, gold)."""
        return self.root / layer / table

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one writer work at a time; a second one gets a `Conflict` at once."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Conflict(
                    "another pipeline is writing to this lake", lake=str(self.root)
                ) from None
            self.recover()
            yield

    def recover(self) -> None:
        """Finish or remove what a killed process left half done."""
        for table in self.root.glob("*/*/"):
            for old in table.glob(".old-*"):
                there = table / old.name.removeprefix(".old-")
                if there.exists():
                    shutil.rmtree(old, ignore_errors=True)
                else:
                    old.rename(there)
            for partial in [*table.glob(".new-*"), *table.glob(".spark-staging-*")]:
                shutil.rmtree(partial, ignore_errors=True)
        for partial in self.root.glob("*/.new-*"):
            shutil.rmtree(partial, ignore_errors=True)

    def state(self) -> LakeState:
        """Return what the tables were made from."""
        try:
            return msgspec.json.decode((self.root / "state.json").read_bytes(), type=LakeState)
        except FileNotFoundError:
            return LakeState()

    def remember(self, state: LakeState) -> None:
        """Write the state atomically: a reader sees the old or the new one."""
        write_whole(self.root / "state.json", msgspec.json.format(msgspec.json.encode(state)))

    def dates(self, layer: str, table: str) -> list[date]:
        """Return the days that a table has, in order."""
        names = (entry.name for entry in self.path(layer, table).glob("date=*"))
        return sorted(date.fromisoformat(name.removeprefix("date=")) for name in names)

    def has(self, layer: str, table: str) -> bool:
        """Return whether a table has any file."""
        return any(self.path(layer, table).rglob("*.parquet"))

    def read(
        self, spark: SparkSession, layer: str, table: str, schema: StructType, *, dated: bool = True
    ) -> DataFrame:
        """Return a table; without rows if it does not exist yet."""
        path = self.path(layer, table)
        if not self.has(layer, table):
            return spark.createDataFrame([], schema)
        frame = spark.read.schema(schema).parquet(str(path))
        return frame.withColumn("date", fn.col("date").cast(DateType())) if dated else frame

    def replace_days(
        self,
        frame: DataFrame,
        layer: str,
        table: str,
        days: Iterable[date],
        *,
        gathered: bool = True,
    ) -> None:
        """Replace days of a table; a day without rows is removed.

        Each day changes in one step for its readers. Rows are `gathered` by day, in one shuffle,
        unless they are ordered so already: otherwise every task would write a file for every day,
        and a reader would open thousands. A day that is larger than a task's share is split.
        """
        path = self.path(layer, table)
        partial = path / f".new-{os.getpid()}"
        path.mkdir(parents=True, exist_ok=True)
        if gathered:
            frame = frame.hint("rebalance", fn.col("date"))
        frame.write.mode("overwrite").partitionBy("date").parquet(str(partial))
        for day in days:
            name = f"date={day.isoformat()}"
            if (partial / name).is_dir():
                swap(partial / name, path / name)
            else:
                shutil.rmtree(path / name, ignore_errors=True)
        shutil.rmtree(partial, ignore_errors=True)

    def replace(self, frame: DataFrame, layer: str, table: str) -> None:
        """Replace a whole table, in one step for its readers."""
        path = self.path(layer, table)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.parent / f".new-{table}"
        shutil.rmtree(partial, ignore_errors=True)
        frame.write.mode("overwrite").parquet(str(partial))
        swap(partial, path)


def swap(fresh: Path, place: Path) -> None:
    """Put a directory in the place of another; readers find one or the other."""
    if not place.exists():
        fresh.rename(place)
        return
    if _exchange(fresh, place):
        shutil.rmtree(fresh)
        return
    old = place.with_name(f".old-{place.name}")
    shutil.rmtree(old, ignore_errors=True)
    place.rename(old)
    fresh.rename(place)
    shutil.rmtree(old)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names atomically; return False if the system cannot do that."""
    try:
        call: Any = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    if ctypes.get_errno() in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(ctypes.get_errno(), "renaming failed", str(other))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it exists with all of its content or not at all, also after a loss of
    power."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
