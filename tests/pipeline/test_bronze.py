"""The log comes in once, whole, and what is not of it is put aside and counted."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import duckdb
import msgspec
import pytest
from pyspark.sql import SparkSession

from lasthop.clock import DAY
from lasthop.errors import Conflict, NotFound
from lasthop.events import SCHEMA_VERSION, Kind
from lasthop.pipeline.bronze import (
    Ingested,
    Ingestion,
    foreign_files,
    quarantined,
    read_events,
)
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.lake import Lake, swap
from lasthop.pipeline.session import LONGEST_LINE
from lasthop.pipeline.upkeep import compact, retain
from tests.pipeline.rows import NOON, History, write_segments


def in_duckdb(lake: Lake) -> int:
    """What another tool sees."""
    files = f"{lake.root}/bronze/events/date=*/batch=*/*.parquet"
    with duckdb.connect() as sql:
        rows = sql.execute(f"select count(*) from read_parquet('{files}')").fetchall()
    return int(rows[0][0])


def a_log(log: Path, count: int = 6) -> History:
    history = History()
    for number in range(count):
        history.tell(Kind.REGISTERED, NOON + number * DAY // 4, dev=f"d{number}")
    history.write(log)
    return history


def test_segments_are_read_once(spark: SparkSession, tmp_path: Path) -> None:
    log, lake = tmp_path / "log", Lake(tmp_path / "lake")
    history = a_log(log)
    assert Ingestion(spark, log, lake).run() == Ingested(batches=1, events=6)
    assert Ingestion(spark, log, lake).run() == Ingested()
    more = [history.tell(Kind.REMOVED, NOON + 3 * DAY, dev="d1")]
    write_segments(log, more)
    assert Ingestion(spark, log, lake).run() == Ingested(batches=1, events=1)
    rows = read_events(spark, lake).orderBy("n").collect()
    assert [(row["n"], row["kind"], row["dev"]) for row in rows] == [
        *((n, "registered", f"d{n}") for n in range(6)),
        (6, "removed", "d1"),
    ]
    assert in_duckdb(lake) == 7


def test_what_is_no_event_is_put_aside_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    log, lake = tmp_path / "log", Lake(tmp_path / "lake")
    history = a_log(log, 2)
    segment = next(log.rglob("*.jsonl"))
    good = msgspec.json.encode(history.events[0])
    newer = good.replace(
        b'{"v":%d' % SCHEMA_VERSION, b'{"v":%d,"sky":"blue"' % (SCHEMA_VERSION + 1)
    )
    newer = newer.replace(b'"n":0', b'"n":2')
    with segment.open("ab") as file:
        file.write(newer + b"\n")
        file.write(good[:40] + b"\n")
        file.write(b'{"v":2,"gw":"gw","boot":1,"n":"three","t":1,"kind":"read"}\n')
        file.write(b"\xff\xfe\x00 not text at all\n")
        file.write(b'[1, 2]\n{"weather": "fine"}\n')
        file.write(b'{"v":2,"gw":"gw","boot":1,"n":9,"t":5,"kind":"read"}\n')
    done = Ingestion(spark, log, lake).run()
    assert done == Ingested(batches=1, events=3, quarantined=6, newer=1)
    found = {row["problem"]: row["lines"] for row in quarantined(spark, lake).collect()}
    assert found == {"truncated": 1, "corrupt": 3, "foreign": 1, "misplaced": 1}
    assert in_duckdb(lake) == 3


def test_a_wild_number_and_a_line_without_end_are_put_aside(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    history = a_log(log, 2)
    segment = next(log.rglob("*.jsonl"))
    good = msgspec.json.encode(history.events[0])
    with segment.open("ab") as file:
        file.write(good.replace(b'"n":0', b'"n":%d' % (2**62)) + b"\n")
    ingested = Ingestion(spark, log, Lake(tmp_path / "lake")).run()
    assert (ingested.events, ingested.quarantined) == (2, 1)
    # A longer file has room for more numbers, so this comes in a second step.
    (segment.parent / f"events-{2:020d}.jsonl").write_bytes(good[:-1] + b"x" * (2 << 20) + b"\n")
    pipeline = Pipeline(spark, log, Lake(tmp_path / "lake"))
    pipeline.prepare()
    assert pipeline.outcome.missing_offsets == 0
    files = {row["problem"]: row["file"] for row in quarantined(spark, pipeline.lake).collect()}
    assert files.keys() == {"misplaced", "overlong"}
    assert files["misplaced"].endswith(f"events-{0:020d}.jsonl")
    assert files["overlong"].endswith(f"events-{2:020d}.jsonl")


def test_a_file_that_no_gateway_writes_is_named(tmp_path: Path) -> None:
    a_log(tmp_path, 1)
    huge = tmp_path / "date=2026-09-04" / f"events-{9:020d}.jsonl"
    with huge.open("wb") as file:
        file.truncate(LONGEST_LINE + 1)
    assert foreign_files(tmp_path) == [huge]


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    a_log(tmp_path, 1)
    (tmp_path / "date=2026-09-04" / "notes.txt").write_text("hello")
    (tmp_path / "date=2026-09-04" / ".events-00000000000000000009.jsonl.open").write_text("{}")
    (tmp_path / "events-00000000000000000001.jsonl").write_text("{}")
    names = [path.name for path in foreign_files(tmp_path)]
    assert names == ["notes.txt", "events-00000000000000000001.jsonl"]


def test_a_missing_log_and_a_busy_lake_are_said(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with pytest.raises(NotFound, match="there is no event log"):
        Ingestion(spark, tmp_path / "nowhere", lake).run()
    other = Lake(tmp_path / "lake")
    with lake.locked(), pytest.raises(Conflict, match="another pipeline"), other.locked():
        pass


def test_compaction_keeps_the_rows_and_leaves_open_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, lake = tmp_path / "log", Lake(tmp_path / "lake")
    a_log(log)
    Ingestion(spark, log, lake, batch_bytes=1).run()
    before = sorted(tuple(row) for row in read_events(spark, lake).collect())
    # The last batch looks as if we had been killed before it was noted: it may be written again.
    commits = sorted((lake.checkpoint / "bronze/commits").glob("[0-9]*"), key=lambda p: int(p.name))
    last = commits[-1].name
    for mark in (lake.checkpoint / "bronze/commits").glob(f"*{last}*"):
        mark.unlink()
    assert compact(spark, lake, most_files=0) >= 1
    assert sorted(tuple(row) for row in read_events(spark, lake).collect()) == before
    assert in_duckdb(lake) == 6
    assert Ingestion(spark, log, lake, batch_bytes=1).run().batches == 1
    assert list(lake.root.glob(f"bronze/events/date=*/batch={last}"))
    assert sorted(tuple(row) for row in read_events(spark, lake).collect()) == before


def test_old_days_go(spark: SparkSession, tmp_path: Path) -> None:
    log, lake = tmp_path / "log", Lake(tmp_path / "lake")
    a_log(log)
    Ingestion(spark, log, lake).run()
    assert len(lake.dates("bronze", "events")) == 2
    assert retain(lake, days=0, today=date(2026, 9, 5)) == 1
    assert lake.dates("bronze", "events") == [date(2026, 9, 5)]


def test_a_directory_takes_the_place_of_another(tmp_path: Path) -> None:
    fresh, place = tmp_path / ".new-t", tmp_path / "t"
    for path, text in ((fresh, "new"), (place, "old")):
        path.mkdir()
        (path / "file").write_text(text)
    swap(fresh, place)
    assert (place / "file").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_what_a_kill_left_half_done_is_put_right(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    table = lake.path("silver", "events")
    for name in (".old-date=2026-09-04", ".old-date=2026-09-05", "date=2026-09-05", ".new-7"):
        (table / name).mkdir(parents=True)
        (table / name / "mark").write_text(name)
    (tmp_path / "gold" / ".new-limits").mkdir(parents=True)
    with lake.locked():
        pass
    marks = {path.name: (path / "mark").read_text() for path in table.iterdir()}
    assert marks == {
        "date=2026-09-04": ".old-date=2026-09-04",
        "date=2026-09-05": "date=2026-09-05",
    }
    assert not list((tmp_path / "gold").iterdir())
    shutil.rmtree(table)
