"""Events of several gateways are told apart, or refused, and never merged."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from lasthop.clock import DAY
from lasthop.errors import Conflict
from lasthop.events import Kind
from lasthop.pipeline import silver
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.lake import Lake
from lasthop.pipeline.stores import LogOwner, joined
from tests.pipeline.rows import NOON, History, rows_of


def a_gateway(number: int, incarnation: str = "") -> History:
    """A gateway called `gw`, like every other, with the same device and the same keys."""
    history = History()
    history.tell(Kind.GATEWAY_STARTED, app="", dev="", incarnation=incarnation)
    for msg in (1, 2):
        history.tell(Kind.ACCEPTED, NOON + msg, msg=msg, size=number, source="publisher:p")
        history.tell(Kind.DELIVERED, NOON + 10 * msg + number, msg=msg)
    return history


def delivered(pipeline: Pipeline) -> list[tuple[object, ...]]:
    table = silver.deliveries(pipeline.silver("events"))
    return rows_of(table.select("store", "msg", "size", "copies", "events"))


def test_gateways_of_one_name_are_told_apart_and_copies_of_a_log_count_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    for number, incarnation in enumerate(("", "", "aa", "bb")):
        a_gateway(number, incarnation).write(log / f"log {number}")
    shutil.copytree(log / "log 2", log / "copy")
    pipeline = Pipeline(spark, log, Lake(tmp_path / "lake"))
    pipeline.prepare()
    assert pipeline.outcome.missing_offsets == 0
    assert pipeline.bronze().count() == 25
    assert pipeline.silver("events").count() == 20
    stores = {"aa": 2, "bb": 3, "log%200:gw": 0, "log%201:gw": 1}
    assert delivered(pipeline) == [
        (store, msg, number, 1, 2) for store, number in stores.items() for msg in (1, 2)
    ]


def test_two_gateways_in_one_directory_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    (segment,) = a_gateway(1).write(log)
    other = a_gateway(2)
    with segment.open("ab") as file:
        file.write(msgspec.json.Encoder().encode_lines(other.events))
    pipeline = Pipeline(spark, log, Lake(tmp_path / "lake"))
    with pytest.raises(Conflict, match="different events with the same number") as refused:
        pipeline.prepare()
    assert "a directory of its own" in str(refused.value)
    assert not pipeline.lake.dates("silver", "events")


def test_an_offset_that_was_given_out_on_two_days_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    a_gateway(1).write(log)
    later = a_gateway(1)
    for event in later.events:
        event.t += DAY
    later.write(log)
    with pytest.raises(Conflict, match="different events with the same number"):
        Pipeline(spark, log, Lake(tmp_path / "lake")).prepare()


def test_a_store_that_is_named_late_is_the_same_gateway(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, lake = tmp_path / "log", Lake(tmp_path / "lake")
    history = a_gateway(1)
    history.write(log)
    Pipeline(spark, log, lake).prepare()
    before = Pipeline(spark, log, lake).silver("events").select("store").distinct()
    assert [row["store"] for row in before.collect()] == [":gw"]
    first = len(history.events)
    history.tell(Kind.GATEWAY_STARTED, NOON + DAY, app="", dev="", incarnation="aa")
    history.tell(Kind.READ, NOON + DAY, msg=1)
    for event in history.events[first:]:
        event.boot = 2
    later = History()
    later.events = history.events[first:]
    later.write(log)
    pipeline = Pipeline(spark, log, lake)
    assert len(pipeline.prepare()) == 2
    assert delivered(pipeline) == [("aa", 1, 1, 1, 3), ("aa", 2, 1, 1, 2)]


def test_several_stores_in_one_directory_are_refused_unless_every_event_names_its_own() -> None:
    known = [LogOwner("a", "gw", ["aa"], bare=True), LogOwner("b", "gw", ["cc"], bare=False)]
    with pytest.raises(Conflict, match="several stores are in one directory"):
        joined(known, [LogOwner("a", "gw", ["bb"])])
    owners = joined(known, [LogOwner("b", "gw", ["dd"]), LogOwner("a", "gw", ["aa"])])
    assert [owner.store for owner in owners] == ["aa", "cc"]
    assert owners[1].incarnations == ["cc", "dd"]
    assert LogOwner("", "gw").store == ":gw"
