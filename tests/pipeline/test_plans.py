"""How Spark runs the tables: no row goes through Python, nothing is paired with everything.

About `pipeline/silver.py` and `pipeline/gold/`.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lasthop.pipeline import silver
from lasthop.pipeline.bronze import good_events, judged, located
from lasthop.pipeline.gold import (
    calendar,
    channels,
    energy,
    heartbeat,
    last_hop,
    quality,
    reading,
    usage as spending,
)
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.schema import LINE

PYTHON = ("BatchEvalPython", "ArrowEvalPython", "MapInPandas", "MapInArrow", "FlatMapGroups")
PAIRS = ("CartesianProduct", "BroadcastNestedLoopJoin")


def plan_of(frame: DataFrame) -> str:
    inner: Any = frame._jdf
    return str(inner.queryExecution().executedPlan().toString())


@pytest.fixture
def frames(fleet: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """Everything that runs over all events, but for the replay."""
    events, deliveries = fleet.silver("events"), fleet.silver("deliveries")
    contacts, beats = fleet.silver("contacts"), fleet.silver("heartbeats")
    lines = fleet.spark.read.schema(LINE).json(str(fleet.log), recursiveFileLookup=True)
    return {
        "bronze": good_events(judged(located(lines, str(fleet.log))), 1),
        "identified": fleet.bronze(),
        "events": silver.events(events),
        "events without copies": silver.events(events, copied=[]),
        "deliveries": silver.deliveries(events),
        "contacts": silver.contacts(events),
        "reads": silver.reads(events),
        "quality": quality.delivery_quality(deliveries),
        "channels": channels.channels(events),
        "usage": spending.usage(events, deliveries),
        "limits": spending.limits(fleet.gold("usage"), events),
        "energy": energy.energy(events),
        "survival": heartbeat.survival(beats),
        "link_hours": calendar.link_hours(contacts, calendar.zones(events), until=1),
        "link_calendar": calendar.link_calendar(fleet.gold("link_hours")),
        "read_profiles": reading.read_profiles(
            fleet.silver("reads"), deliveries, fleet.silver("rank_changes"), until=1
        ),
        "last_hop": last_hop.last_hop(
            deliveries, deliveries.select(*silver.DELIVERY), last_hop.feeds(events)
        ),
    }


def test_no_row_passes_through_python_and_none_meets_all_others(
    frames: dict[str, DataFrame],
) -> None:
    for name, frame in frames.items():
        plan = plan_of(frame)
        for node in (*PYTHON, *PAIRS):
            assert node not in plan, f"{name}: {plan}"


def test_each_table_shuffles_as_often_as_it_says(frames: dict[str, DataFrame]) -> None:
    most = {
        "bronze": 0,
        "identified": 0,
        "events": 1,
        "events without copies": 0,
        "deliveries": 1,
        "reads": 0,
        "quality": 2,
        "channels": 1,
        "energy": 2,
    }
    for name, shuffles in most.items():
        assert plan_of(frames[name]).count("Exchange hashpartitioning") <= shuffles, name


def test_the_replay_is_grouped_with_arrow(fleet: Pipeline) -> None:
    plan = plan_of(last_hop.replayed(fleet.silver("events")))
    assert "FlatMapGroupsInArrow" in plan
    assert "BatchEvalPython" not in plan


def test_days_that_are_not_asked_for_are_not_read(fleet: Pipeline, spark: SparkSession) -> None:
    events = fleet.silver("events")
    plan = plan_of(events.where(events["date"] == "2026-09-05").groupBy("kind").count())
    assert "PartitionFilters: [" in plan
    assert "2026-09-05" in plan.split("PartitionFilters: [")[1].split("]")[0]
