"""The stream keeps tables up to date, survives being killed, and agrees with the batch."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from lasthop.pipeline.jobs import OPERATIONAL, Pipeline, late
from lasthop.pipeline.lake import Lake
from lasthop.pipeline.stream import LogStream, StreamProgress
from tests.pipeline.quick import quickly
from tests.pipeline.rows import rows_of
from tests.pipeline.test_properties import rounded

ROOT = Path(__file__).parents[2]

MARKS = ["bronze/events/date=*", "silver/events/.new-*", "checkpoint/bronze/offsets/1"]
"""What there is to see when it is killed: a batch that is not noted, a day half made, and a batch
that has only been planned."""

KILLS = int(os.environ.get("PIPELINE_KILLS", "1"))
"""Each is a process with a Java of its own; `make nightly` has all of them."""


def copied(log: Path, out: Path, days: list[str]) -> None:
    for path in sorted(log.rglob("*.jsonl")):
        if path.parent.name.removeprefix("date=") in days:
            target = out / path.relative_to(log)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def test_days_that_are_too_old_are_left_for_the_batch() -> None:
    days = [date(2026, 9, n) for n in (1, 4, 5)]
    assert late(days, newest=date(2026, 9, 5)) == (days[1:], days[:1])
    assert late(days, newest=date(2026, 9, 30)) == ([], days)
    assert late([], newest=None) == ([], [])


def test_a_stream_makes_the_rows_that_a_batch_makes(
    spark: SparkSession, fleet: Pipeline, fleet_log: Path, tmp_path: Path
) -> None:
    log, lake = tmp_path / "log", Lake(tmp_path / "lake")
    days = [day.isoformat() for day in fleet.lake.dates("bronze", "events")]
    heard: list[StreamProgress] = []
    stream = LogStream(Pipeline(spark, log, lake), told=heard.append)
    # The third day comes before the second, and the first last: that one is late by then.
    for when in (days[2:3], days[1:2], days[3:], days[:1]):
        copied(fleet_log, log, when)
        stream.start(available_now=True).awaitTermination()
    assert stream.progress.late_days == days[:1]
    assert stream.progress.late_events > 0
    streamed = Pipeline(spark, log, lake)
    assert not streamed.silver("events").where(f"date = '{days[0]}'").count()
    # The next batch picks it up, and then nothing differs.
    streamed.run(counterfactual=False)
    for name in OPERATIONAL:
        assert rounded(rows_of(streamed.gold(name))) == rounded(rows_of(fleet.gold(name))), name
    for name in ("deliveries", "contacts", "reads"):
        assert rows_of(streamed.silver(name)) == rows_of(fleet.silver(name)), name


def in_bronze(lake: Path) -> list[tuple[int, ...]]:
    """What any reader finds at this moment; nothing that it finds may be unreadable."""
    with duckdb.connect() as sql:
        try:
            return sql.execute(
                f"select count(*), count(distinct (gw, boot, n)) from "
                f"read_parquet('{lake}/bronze/events/date=*/batch=*/*.parquet')"
            ).fetchall()
        except duckdb.IOException as error:
            if "No files found" in str(error):
                return [(0, 0)]
            raise


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_killed_at_any_moment_it_has_every_event_once(
    spark: SparkSession, fleet: Pipeline, fleet_log: Path, tmp_path: Path
) -> None:
    """`lasthop pipeline stream` in a process of its own, killed at points that differ."""
    lake = tmp_path / "lake"
    command = [
        *(sys.executable, "-m", "lasthop", "pipeline", "stream", "--log", str(fleet_log)),
        *("--lake", str(lake), "--until-done", "--batch-bytes", "300000", "--master", "local[1]"),
        *quickly(),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for mark in MARKS[:KILLS]:
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 90
        while not list(lake.glob(mark)) and process.poll() is None:
            assert time.monotonic() < deadline, mark
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        in_bronze(lake)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    events = fleet.silver("events").count()
    assert in_bronze(lake) == [(events, events)]
    Pipeline(spark, fleet_log, Lake(lake)).run(counterfactual=False)
    finished = Pipeline(spark, fleet_log, Lake(lake))
    assert rows_of(finished.silver("deliveries")) == rows_of(fleet.silver("deliveries"))
