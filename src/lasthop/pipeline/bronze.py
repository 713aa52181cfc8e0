"""Bronze: the gateway's sealed segments as Parquet, each event once, whenever we are killed.

Structured Streaming remembers which files it has seen. Each micro-batch writes its own directories
and would write the same ones again if it were repeated, so that a batch which was interrupted, or
written and not noted, leaves one copy. Lines that are no events go to the quarantine with the
file that they came from.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession, functions as fn
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from lasthop.errors import NotFound
from lasthop.events import SCHEMA_VERSION
from lasthop.pipeline.lake import Lake, swap
from lasthop.pipeline.schema import BAD, DATED_EVENT, EVENT, LINE, REQUIRED, conform, day_of

EVENTS, QUARANTINE = "events", "quarantine"

QUARANTINED = StructType(
    [
        StructField("problem", StringType()),
        StructField("file", StringType()),
        StructField("line", StringType()),
        StructField("n", LongType()),
        StructField("batch", LongType()),
    ]
)
"""A line that is no event: why, where from, and what it says, cut after 4,096 characters."""

SEALED = re.compile(r"events-\d{20}\.jsonl")

BATCH_BYTES = 1 << 30
"""Of segments in one micro-batch: some four million events. More would need no less work each, and
be lost in one piece when the process is killed."""

LONGEST_LINE_KEPT = 4096

TRUNCATED, CORRUPT, FOREIGN, MISPLACED = "truncated", "corrupt", "foreign", "misplaced"


SEGMENTS = {
    "pathGlobFilter": "events-*.jsonl",
    "recursiveFileLookup": "true",
    "columnNameOfCorruptRecord": BAD,
}
"""Options of a reader of the log's segments."""


def judged(lines: DataFrame) -> DataFrame:
    """Every line with what is wrong with it, or nothing.

    Truncated: it ends before its JSON does. Corrupt: it is no JSON, or a field has another type.
    Foreign: it is JSON of somebody else, without the fields that every event has. Misplaced: its
    time lies on another date than its directory's.
    """
    bad = fn.col(BAD)
    missing = fn.lit(False)
    for name in REQUIRED:
        missing = missing | fn.col(name).isNull()
    begun = bad.startswith("{") & ~fn.rtrim(bad).endswith("}")
    other_day = fn.col("directory") != fn.date_format(day_of(fn.col("t")), "yyyy-MM-dd")
    problem = (
        fn.when(bad.isNotNull() & begun, TRUNCATED)
        .when(bad.isNotNull(), CORRUPT)
        .when(missing | (fn.col("v") < 1) | (fn.col("n") < 0), FOREIGN)
        .when(other_day, MISPLACED)
    )
    return lines.withColumn("problem", problem)


def located(lines: DataFrame) -> DataFrame:
    """Lines with the file and the directory's date that they come from."""
    path = fn.col("_metadata.file_path")
    return lines.withColumn("file", path).withColumn(
        "directory", fn.regexp_extract(path, r"date=(\d{4}-\d\d-\d\d)/[^/]*$", 1)
    )


def good_events(lines: DataFrame, batch: int) -> DataFrame:
    """The events among judged lines, with their date and the batch that brought them."""
    return conform(
        lines.where(fn.col("problem").isNull()).withColumn("date", day_of(fn.col("t"))),
        DATED_EVENT,
    ).withColumn("batch", fn.lit(batch).cast(IntegerType()))


def bad_lines(lines: DataFrame, batch: int) -> DataFrame:
    """The others, for the quarantine."""
    text = fn.coalesce(fn.col(BAD), fn.to_json(fn.struct(*EVENT.fieldNames())))
    return conform(
        lines.where(fn.col("problem").isNotNull())
        .withColumn("line", fn.substring(text, 1, LONGEST_LINE_KEPT))
        .withColumn("batch", fn.lit(batch)),
        QUARANTINED,
    )


@dataclass(slots=True)
class Ingested:
    """What a run of the ingestion has read."""

    batches: int = 0
    events: int = 0
    quarantined: int = 0
    newer: int = 0
    """Events of a newer schema than ours: read as far as we understand them."""


class Ingestion:
    """Reads a log into a lake."""

    def __init__(
        self,
        spark: SparkSession,
        log: Path,
        lake: Lake,
        *,
        after_batch: Callable[[int], None] = lambda batch: None,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._spark = spark
        self._log = log.absolute()
        self._lake = lake
        self._after_batch = after_batch
        self._batch_bytes = batch_bytes
        self.done = Ingested()

    def run(self) -> Ingested:
        """Read everything that is there, and end."""
        query = self.start(available_now=True)
        query.awaitTermination()
        return self.done

    def start(self, *, available_now: bool = False, every: str = "5 seconds") -> StreamingQuery:
        """Read what is there, and go on with what is sealed."""
        if not self._log.is_dir():
            raise NotFound("there is no event log", log=str(self._log))
        reader = self._spark.readStream.schema(LINE).option("maxBytesPerTrigger", self._batch_bytes)
        for key, value in SEGMENTS.items():
            reader = reader.option(key, value)
        # Looked up recursively, the directories' dates do not become a column: `t` tells them.
        lines = judged(located(reader.json(str(self._log))))
        writer = lines.writeStream.foreachBatch(self._write).option(
            "checkpointLocation", str(self._lake.checkpoint / "bronze")
        )
        if available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=every).start()

    def _write(self, lines: DataFrame, batch: int) -> None:
        counts = Observation()
        observed = lines.observe(
            counts,
            fn.count(fn.when(fn.col("problem").isNull(), 1)).alias("events"),
            fn.count("problem").alias("bad"),
            fn.count(fn.when(fn.col("v") > SCHEMA_VERSION, 1)).alias("newer"),
        )
        path = self._lake.path("bronze", EVENTS)
        (
            good_events(observed, batch)
            .write.mode("overwrite")
            .partitionBy("date", "batch")
            .parquet(str(path))
        )
        seen = counts.get
        if seen["bad"]:
            # Rare, so that reading the batch a second time costs less than keeping it for this.
            (
                bad_lines(lines, batch)
                .write.mode("overwrite")
                .partitionBy("batch")
                .parquet(str(self._lake.path("bronze", QUARANTINE)))
            )
        self.done.batches += 1
        self.done.events += seen["events"]
        self.done.quarantined += seen["bad"]
        self.done.newer += seen["newer"]
        self._after_batch(batch)


def read_events(spark: SparkSession, lake: Lake) -> DataFrame:
    """Bronze as it is now: its dates, without the batches."""
    schema = StructType([*DATED_EVENT.fields, StructField("batch", IntegerType())])
    return lake.read(spark, "bronze", EVENTS, schema).drop("batch")


def quarantined(spark: SparkSession, lake: Lake) -> DataFrame:
    """What was no event, by problem and file."""
    frame = lake.read(spark, "bronze", QUARANTINE, QUARANTINED, dated=False)
    return (
        frame.groupBy("problem", "file")
        .agg(fn.count("*").alias("lines"))
        .orderBy("problem", "file")
    )


def foreign_files(log: Path) -> list[Path]:
    """Files among the segments that are none: wrong names, wrong places. They are not read."""
    found = []
    for path in sorted(log.rglob("*")):
        name = path.name
        if path.is_dir() or name.startswith("."):
            continue
        in_place = re.fullmatch(r"date=\d{4}-\d\d-\d\d", path.parent.name)
        if not (in_place and SEALED.fullmatch(name)):
            found.append(path)
    return found


def missing_offsets(events: DataFrame) -> DataFrame:
    """How many offsets of each gateway never came: `n` is dense over the life of a store.

    Of what is before the oldest and after the newest that did come, nothing can be said. One
    shuffle of ids, day by day, and one of a row for each day.
    """
    days = events.groupBy("gw", "date").agg(
        fn.min("n").alias("first"),
        fn.max("n").alias("last"),
        fn.count_distinct("n").alias("events"),
    )
    whole = days.groupBy("gw").agg(
        fn.min("first").alias("first"),
        fn.max("last").alias("last"),
        fn.sum("events").alias("events"),
    )
    return whole.withColumn("missing", fn.col("last") - fn.col("first") + 1 - fn.col("events"))


def committed_batches(lake: Lake) -> set[int]:
    """Batches that will not be written again."""
    commits = lake.checkpoint / "bronze" / "commits"
    return {int(path.name) for path in commits.glob("*") if path.name.isdigit()}


def compact(spark: SparkSession, lake: Lake, *, most_files: int = 4) -> int:
    """Make one directory of a day's batches where there are many files; how many days were.

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
        # Neighbours on a device's line are alike: sorted, they take half the room.
        (
            spark.read.schema(EVENT)
            .parquet(*map(str, files))
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


def fingerprint(day: Path) -> list[str]:
    """What a day of bronze consists of: any new batch changes it."""
    return sorted(f"{file.parent.name}/{file.name}" for file in day.glob("batch=*/*.parquet"))


def retain(lake: Lake, *, days: int, today: date) -> int:
    """Delete what is older, in every table with dates; how many directories went."""
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
