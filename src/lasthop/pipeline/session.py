"""A Spark session with the settings that this pipeline needs, wherever Spark runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.errors import PySparkException as SparkError
from pyspark.sql import SparkSession

from lasthop.pipeline.java import ensure_java

__all__ = ["SparkError", "open_session", "through_connect"]

LONGEST_LINE = 80 << 20
"""The longest line that is read, in bytes: longer than a segment of a gateway, so that a line is
skipped only in a file that no gateway has written. Such files are named, see
`bronze.foreign_files`; they must not fill the memory."""

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # A repeated run replaces the partitions that it writes and no others.
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.hadoop.mapreduce.input.linerecordreader.line.maxlength": str(LONGEST_LINE),
    # Success files and checksums would only disturb other readers.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.local.block.size": str(64 << 20),
    "spark.sql.streaming.stopTimeout": "10s",
    # A year of days, or of a fleet's segments, is listed faster than a job for it is started.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}

LOCAL = "local[*]"

MAX_LOCAL_HEAP = 4096
LEAST_HEAP = 1024
"""Limits for the heap of a local session, in megabytes: it gets a quarter of the machine's memory,
within these."""


def open_session(
    *,
    master: str = LOCAL,
    remote: str | None = None,
    name: str = "lasthop",
    scratch: Path | None = None,
    settings: dict[str, str] | None = None,
) -> SparkSession:
    """Open a session on this machine, on a cluster (`master`), or through Spark Connect
    (`remote`)."""
    # Otherwise workers would use the first `python3` on the path, which may lack our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder: SparkSession.Builder = SparkSession.builder.appName(name)
    chosen = {**SETTINGS, **(settings or {})}
    if remote is not None:
        builder = builder.remote(remote)
        chosen = {key: value for key, value in chosen.items() if key.startswith("spark.sql.")}
    else:
        ensure_java()
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            chosen = _local_settings(master) | chosen
        if scratch is not None:
            chosen.setdefault("spark.local.dir", str(scratch))
            chosen.setdefault("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if remote is None:
        session.sparkContext.setLogLevel("ERROR")
    return session


def through_connect(spark: SparkSession) -> bool:
    """Return whether the session runs in another process, behind Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _local_settings(master: str) -> dict[str, str]:
    cores = os.cpu_count() or 1
    wanted = master.removeprefix("local[").split(",")[0].rstrip("]")
    parallel = int(wanted) if wanted.isdigit() else cores
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{_heap()}m",
        # Enough partitions that one of a large run fits into memory; Spark joins those of a small
        # run.
        "spark.sql.shuffle.partitions": str(max(16, 16 * parallel)),
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    }


def _heap() -> int:
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return LEAST_HEAP
    return max(LEAST_HEAP, min(MAX_LOCAL_HEAP, pages * size // (4 << 20)))
