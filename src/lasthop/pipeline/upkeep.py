"""Upkeep of bronze: small files are joined, and old days removed."""

from __future__ import annotations

import shutil
from datetime import date, timedelta

from pyspark.sql import SparkSession

from lasthop.pipeline.bronze import EVENTS, fingerprint
from lasthop.pipeline.lake import Lake, swap
from lasthop.pipeline.schema import BRONZE_EVENT


def committed_batches(lake: Lake) -> set[int]:
    """Return the numbers of batches that will not be written again."""
    commits = lake.checkpoint / "bronze" / "commits"
    return {int(path.name) for path in commits.glob("*") if path.name.isdigit()}


def compact(spark: SparkSession, lake: Lake, *, most_files: int = 4) -> int:
    """Join the batches of every day that has many files; return the number of such days.

    A batch that is not noted as done may be written again, and is left alone.
    """
    path = lake.path("bronze", EVENTS)
    done = committed_batches(lake)
    days = 0
    state = lake.state()
    for day in sorted(path.glob("date=*")):
        batches = [d for d in day.glob("batch=*") if int(d.name.removeprefix("batch=")) in done]
        files = [file for batch in batches for file in batch.glob("*.parquet")]
        if len(files) <= most_files:
            continue
        newest = max(int(batch.name.removeprefix("batch=")) for batch in batches)
        partial = path / f".new-{day.name}"
        shutil.rmtree(partial, ignore_errors=True)
        size = sum(file.stat().st_size for file in files)
        parts = max(1, size // (128 << 20))
        # Neighbouring events of a device are alike: sorted, they take half the space.
        (
            spark.read.schema(BRONZE_EVENT)
            .parquet(*map(str, files))
            .drop("date")
            .repartitionByRange(parts, "app", "dev", "n")
            .sortWithinPartitions("app", "dev", "n")
            .write.mode("overwrite")
            .parquet(str(partial / f"batch={newest}"))
        )
        for other in set(day.glob("batch=*")) - set(batches):
            shutil.copytree(other, partial / other.name)
        swap(partial, day)
        name = day.name.removeprefix("date=")
        if name in state.bronze:
            state.bronze[name] = fingerprint(day)
            lake.remember(state)
        days += 1
    return days


def retain(lake: Lake, *, days: int, today: date) -> int:
    """Delete older days in every table with dates; return the number of deleted directories."""
    oldest = today - timedelta(days=days)
    gone = 0
    for partition in lake.root.glob("*/*/date=*"):
        if date.fromisoformat(partition.name.removeprefix("date=")) < oldest:
            hidden = partition.with_name(f".new-{partition.name}")
            partition.rename(hidden)
            shutil.rmtree(hidden)
            gone += 1
    state = lake.state()
    state.bronze = {day: seen for day, seen in state.bronze.items() if day >= oldest.isoformat()}
    lake.remember(state)
    return gone
