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
from pathlib import Path

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
from lasthop.pipeline.schema import BAD, DATED_EVENT, EVENT, LINE, REQUIRED, conform, day_of
from lasthop.pipeline.session import through_connect

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
    other_day = ~day_of(fn.col("t")).eqNullSafe(fn.col("directory"))
    problem = (
        fn.when(bad.isNotNull() & begun, TRUNCATED)
        .when(bad.isNotNull(), CORRUPT)
        .when(missing | (fn.col("v") < 1) | (fn.col("n") < 0), FOREIGN)
        .when(other_day, MISPLACED)
    )
    return lines.withColumn("problem", problem)


def located(lines: DataFrame) -> DataFrame:
    """Lines with the file that they come from, and the date of its directory, if that is one."""
    path = fn.col("_metadata.file_path")
    # Once for every line: cutting at slashes takes a fraction of what a regular expression does.
    directory = fn.substring_index(fn.substring_index(path, "/", -2), "/", 1)
    dated = directory.startswith("date=") & (fn.length(directory) == len("date=YYYY-MM-DD"))
    day = fn.when(dated, fn.substring(directory, 6, 10)).try_cast(DateType())
    return lines.withColumn("file", path).withColumn("directory", day)


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


class Ingested(msgspec.Struct):
    """What a run of the ingestion has read."""

    batches: int = 0
    events: int = 0
    quarantined: int = 0
    newer: int = 0
    """Events of a newer schema than ours: read as far as we understand them."""

    def add(self, other: Ingested) -> None:
        """Take another batch's counts in."""
        self.batches += other.batches
        self.events += other.events
        self.quarantined += other.quarantined
        self.newer += other.newer


def write_batch(lines: DataFrame, batch: int, lake: Lake) -> Ingested:
    """Put the judged lines of a micro-batch where they belong."""
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
        # Rare, so that reading the batch a second time costs less than keeping it for this.
        (
            bad_lines(lines, batch)
            .write.mode("overwrite")
            .partitionBy("batch")
            .parquet(str(lake.path("bronze", QUARANTINE)))
        )
    return Ingested(1, seen["events"], seen["bad"], seen["newer"])


@dataclass(frozen=True, slots=True)
class RemoteWriter:
    """Writes micro-batches in the process of a Spark Connect server, which has nothing of ours but
    this; what it counted it leaves in the lake for whoever started it."""

    root: Path

    def __call__(self, lines: DataFrame, batch: int) -> None:
        lake = Lake(self.root)
        counts = msgspec.json.encode(write_batch(lines, batch, lake))
        write_whole(lake.checkpoint / "counts" / f"{batch}.json", counts)

    def forget(self) -> None:
        """Nobody waits for what is there."""
        shutil.rmtree(Lake(self.root).checkpoint / "counts", ignore_errors=True)

    def counted(self) -> Ingested:
        """What the batches since then have counted."""
        total = Ingested()
        for path in (Lake(self.root).checkpoint / "counts").glob("*.json"):
            total.add(msgspec.json.decode(path.read_bytes(), type=Ingested))
        return total


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
        """Read what is there, and go on with what is sealed."""
        if through_connect(self._spark):
            raise InvalidRequest(
                "a stream works between batches, in the process that has the session: "
                "through Spark Connect only `run` does"
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
        # Looked up recursively, the directories' dates do not become a column: `t` tells them.
        lines = judged(located(reader.json(str(self._log))))
        return lines.writeStream.foreachBatch(write).option(
            "checkpointLocation", str(self._lake.checkpoint / "bronze")
        )

    def _write(self, lines: DataFrame, batch: int) -> None:
        self.done.add(write_batch(lines, batch, self._lake))
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


def fingerprint(day: Path) -> list[str]:
    """What a day of bronze consists of: any new batch changes it."""
    return sorted(f"{file.parent.name}/{file.name}" for file in day.glob("batch=*/*.parquet"))
