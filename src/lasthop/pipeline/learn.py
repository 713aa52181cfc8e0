"""From gold to policies: which forwarding policy suits each device and topic, and what to fall back
on.

Devices that were observed for long enough get a choice of their own. The others share the choice of
their segment; new devices and new topics share that of the fleet. A version says which days it
comes from and what it achieved on the last part of them, which the choice had not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Window, functions as fn
from pyspark.sql.types import StructType

from lasthop import __version__
from lasthop.clock import Micros
from lasthop.errors import NotFound
from lasthop.pipeline.gold import calendar, heartbeat
from lasthop.pipeline.gold.last_hop import by_device
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.replay import ReplayRow
from lasthop.pipeline.schema import ratio
from lasthop.pipeline.silver import FLAG, NUMBER, TEXT, table
from lasthop.pipeline.tuning import CANDIDATES, LIVE, SURE_READS, Score, cost, tune
from lasthop.policy import (
    FORMAT,
    LONGEST_INTERVAL,
    SHORTEST_INTERVAL,
    Calendar,
    DevicePolicy,
    Forwarding,
    Lineage,
    Policies,
    TopicPolicy,
)

HELD_OUT = 0.2
"""The share of the days, the last ones, on which the choice of a policy is judged."""

FEW_DAYS = 2
"""A log of no more days than this is not split between days: the last fifth of a young log may be
minutes."""

SCORES: StructType = table(
    store=TEXT,
    app=TEXT,
    dev=TEXT,
    topic=TEXT,
    segment=TEXT,
    candidate=NUMBER,
    reads=NUMBER,
    forwarded=NUMBER,
    wasted=NUMBER,
    read_online=NUMBER,
    lost=NUMBER,
    held_forwarded=NUMBER,
    held_wasted=NUMBER,
    held_read_online=NUMBER,
    held_lost=NUMBER,
    best=FLAG,
    memory=TEXT,
)

COUNTS = ("forwarded", "wasted", "read_online", "lost")

LEAST_IN_A_SEGMENT = 5
"""The least number of devices in a segment; a smaller segment uses the choice of the fleet."""


@dataclass(frozen=True, slots=True)
class DaySpan:
    """Days of the log, both included, and where the held-out part of them begins."""

    first: date
    last: date

    @property
    def split(self) -> date:
        held = max(1, round(((self.last - self.first).days + 1) * HELD_OUT))
        return self.last - timedelta(days=held - 1)


def micros_of(day: date) -> Micros:
    """Return the first moment of a UTC day, in microseconds."""
    moment = datetime.combine(day, time(), timezone(timedelta()))
    return int(moment.timestamp()) * 1_000_000


def split_of(events: DataFrame, span: DaySpan) -> Micros:
    """Return the time from which on the log is only used to judge the choice of a policy."""
    if (span.last - span.first).days >= FEW_DAYS:
        return micros_of(span.split)
    ends = events.agg(fn.min("t").alias("first"), fn.max("t").alias("last")).first()
    if ends is None or ends["first"] is None:
        return micros_of(span.split)
    first, last = int(ends["first"]), int(ends["last"])
    return last - round(HELD_OUT * (last - first))


def scores(events: DataFrame, span: DaySpan) -> DataFrame:
    """Return the score of every candidate on every device and topic; one shuffle by device."""
    split = split_of(events, span)

    def work(app: str, dev: str, rows: list[ReplayRow]) -> dict[str, list[Any]]:
        found = tune(rows, split=split)
        return {name: [getattr(score, name) for score in found] for name in Score._fields}

    of_feeds = events.where(fn.col("date").between(span.first, span.last))
    return by_device(of_feeds, work, SCORES)


def shared_choices(scores: DataFrame, *keys: str) -> DataFrame:
    """Return the best candidate over all devices with the same keys, and the number of these
    devices."""
    counted = scores.where(fn.col("candidate") != LIVE).groupBy(*keys, "candidate")
    sums = counted.agg(
        *(fn.sum(name).alias(name) for name in COUNTS),
        fn.count_distinct("app", "dev").alias("devices"),
        fn.sum("reads").alias("reads"),
    )
    waste = ratio(fn.col("wasted"), fn.col("forwarded"))
    loss = ratio(fn.col("lost"), fn.col("read_online"))
    worse = fn.coalesce(waste, fn.lit(0.0)) + fn.coalesce(loss, fn.lit(0.0))
    place = fn.row_number().over(Window.partitionBy(*keys).orderBy(worse, "candidate"))
    return sums.withColumn("place", place).where(fn.col("place") == 1)


def learn(pipeline: Pipeline, span: DaySpan, *, made_at: Micros, note: str = "") -> Policies:
    """Learn a version of the policies from the events of these days."""
    events = pipeline.silver("events").where(fn.col("date").between(span.first, span.last))
    found = scores(events, span).persist()
    try:
        total = events.count()
        if not total:
            raise NotFound("the log has no events of these days", first=span.first, last=span.last)
        devices, held_out = _of_devices(found)
        segments = [
            TopicPolicy(row["app"], row["segment"], row["topic"], _chosen(row))
            for row in shared_choices(found, "app", "segment", "topic").toLocalIterator()
            if row["devices"] >= LEAST_IN_A_SEGMENT
        ]
        fleet = [
            TopicPolicy(row["app"], "", row["topic"], _chosen(row))
            for these in (found, found.withColumn("topic", fn.lit("")))
            for row in shared_choices(these, "app", "topic").toLocalIterator()
        ]
        about = _about(pipeline, found, span)
        return Policies(
            FORMAT,
            "draft",
            Lineage(
                code=__version__,
                made_at=made_at,
                first_day=span.first.isoformat(),
                last_day=span.last.isoformat(),
                events=total,
                held_out=held_out,
                note=note,
            ),
            fleet=tuple(fleet),
            segments=tuple(segments),
            devices=tuple(devices),
            about=tuple(about),
            heartbeats=_heartbeats(pipeline, span),
        )
    finally:
        found.unpersist()


def _of_devices(found: DataFrame) -> tuple[list[TopicPolicy], dict[str, float]]:
    """Return what suits each device, and what that achieved on the held-out part.

    The result has as many rows as the file will have: one process writes the file, and one reads
    it.
    """
    devices = []
    ours, live = [0, 0, 0, 0], [0, 0, 0, 0]
    names = [f"held_{name}" for name in COUNTS]
    chosen = found.where(fn.col("best"))
    for row in chosen.toLocalIterator():
        confidence = round(min(1.0, row["reads"] / SURE_READS), 3)
        memory = msgspec.json.decode(row["memory"]) if row["memory"] else {}
        forwarding = msgspec.structs.replace(
            CANDIDATES[row["candidate"]], memory=memory, confidence=confidence
        )
        devices.append(TopicPolicy(row["app"], row["dev"], row["topic"], forwarding))
        ours = [count + row[name] for count, name in zip(ours, names, strict=True)]
    judged = found.where(fn.col("candidate") == LIVE).join(
        chosen.select("app", "dev", "topic"), ["app", "dev", "topic"], "left_semi"
    )
    sums = judged.agg(*(fn.sum(name).alias(name) for name in names)).first()
    if sums is not None and sums[0] is not None:
        live = [int(sums[name]) for name in names]
    held_out: dict[str, float] = {}
    for prefix, counts in (("", ours), ("live_", live)):
        forwarded, wasted, online, lost = counts
        held_out |= {
            f"{prefix}waste": round(wasted / forwarded, 6) if forwarded else 0.0,
            f"{prefix}loss": round(lost / online, 6) if online else 0.0,
            f"{prefix}waste_and_loss": round(cost(forwarded, wasted, online, lost), 6),
        }
    return devices, held_out


def _chosen(row: Any) -> Forwarding:
    confidence = round(min(1.0, row["reads"] / SURE_READS), 3)
    candidate: Forwarding = CANDIDATES[row["candidate"]]
    return msgspec.structs.replace(candidate, confidence=confidence)


def _about(pipeline: Pipeline, found: DataFrame, span: DaySpan) -> list[DevicePolicy]:
    """Return segments and link calendars; as many rows as there are devices and links."""
    days = fn.col("date").between(span.first, span.last)
    until = micros_of(span.last + timedelta(days=1))
    events = pipeline.silver("events").where(days)
    hours = calendar.link_hours(
        pipeline.silver("contacts").where(days), calendar.zones(events), until=until
    )
    weeks: dict[tuple[str, str], tuple[str, dict[str, tuple[int, ...]]]] = {}
    for row in calendar.link_calendar(hours).toLocalIterator():
        percent = tuple(round(100 * chance) for chance in row["hours"])
        _, links = weeks.setdefault((row["app"], row["dev"]), (row["zone"], {}))
        links[row["link"]] = percent
    segments = found.groupBy("app", "dev").agg(fn.max_by("segment", "reads").alias("segment"))
    about = []
    for row in segments.toLocalIterator():
        zone, links = weeks.pop((row["app"], row["dev"]), ("UTC", {}))
        week = Calendar(zone, links) if links else None
        about.append(DevicePolicy(row["app"], row["dev"], row["segment"], week))
    for (app, dev), (zone, links) in weeks.items():
        about.append(DevicePolicy(app, dev, "", Calendar(zone, links)))
    return sorted(about, key=lambda device: (device.app, device.name))


def _heartbeats(pipeline: Pipeline, span: DaySpan) -> dict[str, Micros]:
    """Return the heartbeat interval of each network; the shortest if several links share its
    name."""
    beats = pipeline.silver("heartbeats").where(fn.col("date").between(span.first, span.last))
    best = heartbeat.best_intervals(heartbeat.survival(beats), beats)
    intervals: dict[str, Micros] = {}
    for row in best.orderBy("network").toLocalIterator():
        interval = min(max(int(row["interval"]), SHORTEST_INTERVAL), LONGEST_INTERVAL)
        intervals[row["network"]] = min(interval, intervals.get(row["network"], interval))
    return intervals
