"""Bronze: the gateway's sealed segments as Parquet, each event once, even if the process is killed.

Structured Streaming remembers which files it has read. Each micro-batch writes its own directories
and would write the same ones again if it were repeated, so that a batch which was interrupted, or
written and not noted, leaves one copy. Lines that are not events go to the quarantine with the name
of their file.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from pyspark.sql import DataFrame, Observation, SparkSession, functions as fn
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import (
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from lasthop.errors import InvalidRequest, NotFound
from lasthop.events import SCHEMA_VERSION
from lasthop.pipeline.lake import Lake, write_whole
from lasthop.pipeline.schema import BAD, BRONZE_EVENT, EVENT, LINE, REQUIRED, conform, day_of
from lasthop.pipeline.session import LONGEST_LINE, through_connect

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
"""A line that is not an event: the problem, the file and the text, cut after 4,096 characters."""

DIGITS = 20
"""Digits of the first number of a segment, in its name."""

SEALED = re.compile(rf"events-\d{{{DIGITS}}}\.jsonl")

BATCH_BYTES = 1 << 30
"""Bytes of segments in one micro-batch: about four million events. A larger batch would not save
work, and more of it would be lost when the process is killed."""

LONGEST_LINE_KEPT = 4096

LONGEST_EVENT = 1 << 20
"""The longest text, in characters, that may be a damaged event: an event has a few hundred, with a
thousand keys about twenty thousand."""

SHORTEST_EVENT = 40
"""Bytes of the shortest event: a segment cannot have more of them than its length allows."""

TRUNCATED, CORRUPT, FOREIGN, MISPLACED = "truncated", "corrupt", "foreign", "misplaced"
OVERLONG = "overlong"


SEGMENTS = {
    "pathGlobFilter": "events-*.jsonl",
    "recursiveFileLookup": "true",
    "columnNameOfCorruptRecord": BAD,
}
"""Options for reading the log's segments."""


def judged(lines: DataFrame) -> DataFrame:
    """Return every line with its problem, or null if it is an event.

    Truncated: the line ends before its JSON does. Corrupt: the line is not JSON, or a field has
    another type. Overlong: such a line, too long for an event. Foreign: the line is JSON without
    the fields that every event has. Misplaced: the time of the event lies on another date than that
    of its directory, or its number is so far from the first one that its segment cannot have it.
    """
    bad = fn.col(BAD)
    missing = fn.lit(False)
    for name in REQUIRED:
        missing = missing | fn.col(name).isNull()
    begun = bad.startswith("{") & ~fn.rtrim(bad).endswith("}")
    other_day = ~day_of(fn.col("t")).eqNullSafe(fn.col("directory"))
    # Real numbers: a wild number must not overflow.
    off = fn.abs(fn.col("n").cast("double") - fn.col("first").cast("double"))
    wild = off * SHORTEST_EVENT > fn.col("bytes_of_file")
    problem = (
        fn.when(fn.length(bad) > LONGEST_EVENT, OVERLONG)
        .when(bad.isNotNull() & begun, TRUNCATED)
        .when(bad.isNotNull(), CORRUPT)
        .when(missing | (fn.col("v") < 1) | (fn.col("n") < 0), FOREIGN)
        .when(other_day | wild, MISPLACED)
    )
    return lines.withColumn("problem", problem)


def located(lines: DataFrame, root: str = "") -> DataFrame:
    """Return lines with the file that they come from, its length and the first number in its name,
    the date of its directory if it has one, and the directory of its log, relative to `root`, the
    path of a URI."""
    path = fn.col("_metadata.file_path")
    # This is done for every line: cutting at slashes takes a fraction of the time of a regular
    # expression.
    directory = fn.substring_index(fn.substring_index(path, "/", -2), "/", 1)
    dated = directory.startswith("date=") & (fn.length(directory) == len("date=YYYY-MM-DD"))
    day = fn.when(dated, fn.substring(directory, 6, 10)).try_cast(DateType())
    number = fn.substring(fn.substring_index(path, "/", -1), len("events-") + 1, DIGITS)
    above = fn.length(path) - fn.length(fn.substring_index(path, "/", -2)) - 1
    log = fn.substr(path, fn.lit(1), above)
    # Spark may write the scheme before the path in other ways than Python does.
    begins = fn.instr(log, fn.lit(root))
    within = fn.ltrim(fn.substr(log, begins + len(root)), fn.lit("/"))
    return lines.withColumns(
        {
            "file": path,
            "directory": day,
            "first": number.try_cast(LongType()),
            "bytes_of_file": fn.col("_metadata.file_size"),
            "log": fn.when(begins > 0, within).otherwise(log),
        }
    )


def good_events(lines: DataFrame, batch: int) -> DataFrame:
    """Return the events among judged lines, with their date and the batch that brought them."""
    return conform(
        lines.where(fn.col("problem").isNull()).withColumn("date", day_of(fn.col("t"))),
        BRONZE_EVENT,
    ).withColumn("batch", fn.lit(batch).cast(IntegerType()))


def bad_lines(lines: DataFrame, batch: int) -> DataFrame:
    """Return the lines that are not events, for the quarantine."""
    text = fn.coalesce(fn.col(BAD), fn.to_json(fn.struct(*EVENT.fieldNames())))
    return conform(
        lines.where(fn.col("problem").isNotNull())
        .withColumn("line", fn.substring(text, 1, LONGEST_LINE_KEPT))
        .withColumn("batch", fn.lit(batch)),
        QUARANTINED,
    )


class Ingested(msgspec.Struct):
    """The counts of one run of the ingestion."""

    batches: int = 0
    events: int = 0
    quarantined: int = 0
    newer: int = 0
    """Events of a newer schema than ours: only the fields that we know were read."""

    def add(self, other: Ingested) -> None:
        """Add the counts of another batch."""
        self.batches += other.batches
        self.events += other.events
        self.quarantined += other.quarantined
        self.newer += other.newer


def write_batch(lines: DataFrame, batch: int, lake: Lake) -> Ingested:
    """Write the judged lines of a micro-batch to the events and the quarantine; return the
    counts."""
    counts = Observation()
    observed = lines.observe(
        counts,
        fn.count(fn.when(fn.col("problem").isNull(), 1)).alias("events"),
        fn.count("problem").alias("bad"),
        fn.count(fn.when(fn.col("v") > SCHEMA_VERSION, 1)).alias("newer"),
    )
    (
        good_events(observed, batch)
        .write.mode("overwrite")
        .partitionBy("date", "batch")
        .parquet(str(lake.path("bronze", EVENTS)))
    )
    seen = counts.get
    if seen["bad"]:
        # Bad lines are rare, so reading the batch a second time costs less than keeping it for
        # this.
        (
            bad_lines(lines, batch)
            .write.mode("overwrite")
            .partitionBy("batch")
            .parquet(str(lake.path("bronze", QUARANTINE)))
        )
    return Ingested(1, seen["events"], seen["bad"], seen["newer"])


@dataclass(frozen=True, slots=True)
class RemoteWriter:
    """Writes micro-batches in the process of a Spark Connect server, which has no other object of
    ours; it leaves its counts in the lake for the process that started the run."""

    root: Path

    def __call__(self, lines: DataFrame, batch: int) -> None:
        lake = Lake(self.root)
        counts = msgspec.json.encode(write_batch(lines, batch, lake))
        write_whole(lake.checkpoint / "counts" / f"{batch}.json", counts)

    def forget(self) -> None:
        """Remove the counts of earlier runs."""
        shutil.rmtree(Lake(self.root).checkpoint / "counts", ignore_errors=True)

    def counted(self) -> Ingested:
        """Return the sum of the counts since `forget`."""
        total = Ingested()
        for path in (Lake(self.root).checkpoint / "counts").glob("*.json"):
            total.add(msgspec.json.decode(path.read_bytes(), type=Ingested))
        return total


class Ingestion:
    """Reads an event log into the bronze tables of a lake."""

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
        """Read everything that is in the log, and end."""
        if not through_connect(self._spark):
            self.start(available_now=True).awaitTermination()
            return self.done
        writer = RemoteWriter(self._lake.root)
        writer.forget()
        self._query(writer).trigger(availableNow=True).start().awaitTermination()
        self.done = writer.counted()
        writer.forget()
        return self.done

    def start(self, *, available_now: bool = False, every: str = "5 seconds") -> StreamingQuery:
        """Read what is in the log, and continue with segments as they are sealed."""
        if through_connect(self._spark):
            raise InvalidRequest(
                "a stream needs the Spark session in its own process: "
                "through Spark Connect, only single runs work"
            )
        query = self._query(self._write)
        if available_now:
            return query.trigger(availableNow=True).start()
        return query.trigger(processingTime=every).start()

    def _query(self, write: Callable[[DataFrame, int], None]) -> DataStreamWriter:
        if not self._log.is_dir():
            raise NotFound("there is no event log", log=str(self._log))
        reader = self._spark.readStream.schema(LINE).option("maxBytesPerTrigger", self._batch_bytes)
        for key, value in SEGMENTS.items():
            reader = reader.option(key, value)
        # With a recursive lookup, the dates of directories do not become a column: the date follows
        # from `t`.
        lines = judged(located(reader.json(str(self._log)), urlsplit(self._log.as_uri()).path))
        return lines.writeStream.foreachBatch(write).option(
            "checkpointLocation", str(self._lake.checkpoint / "bronze")
        )

    def _write(self, lines: DataFrame, batch: int) -> None:
        self.done.add(write_batch(lines, batch, self._lake))
        self._after_batch(batch)


def read_events(spark: SparkSession, lake: Lake) -> DataFrame:
    """Return all events of bronze, with their dates and without their batches."""
    schema = StructType([*BRONZE_EVENT.fields, StructField("batch", IntegerType())])
    # Earlier versions did not keep the directory.
    return lake.read(spark, "bronze", EVENTS, schema).drop("batch").fillna({"log": ""})


def quarantined(spark: SparkSession, lake: Lake) -> DataFrame:
    """Return the number of quarantined lines, by problem and file."""
    frame = lake.read(spark, "bronze", QUARANTINE, QUARANTINED, dated=False)
    return (
        frame.groupBy("problem", "file")
        .agg(fn.count("*").alias("lines"))
        .orderBy("problem", "file")
    )


def foreign_files(log: Path) -> list[Path]:
    """Return files among the segments that have a wrong name or place, which are not read, or that
    are so large that a line of them may have been skipped."""
    found = []
    for path in sorted(log.rglob("*")):
        name = path.name
        if path.is_dir() or name.startswith("."):
            continue
        in_place = re.fullmatch(r"date=\d{4}-\d\d-\d\d", path.parent.name)
        sealed = in_place and SEALED.fullmatch(name)
        if not sealed or path.stat().st_size > LONGEST_LINE:
            found.append(path)
    return found


def fingerprint(day: Path) -> list[str]:
    """Return the names of all files of a day of bronze: any new batch changes them."""
    return sorted(f"{file.parent.name}/{file.name}" for file in day.glob("batch=*/*.parquet"))
