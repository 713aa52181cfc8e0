"""A summary of the tables on one page: the report draws it, and the gateway, which has neither Java
nor Parquet, shows it on its dashboard.

Everything that is fetched from Spark is an aggregate whose size does not grow with the log: by day,
by hour, by link, and only the busiest networks.
"""

from __future__ import annotations

from typing import Any

import msgspec
from pyspark.sql import DataFrame, functions as fn

from lasthop.clock import Micros
from lasthop.pipeline.audit import Agreed, agreed
from lasthop.pipeline.bronze import quarantined
from lasthop.pipeline.gold.calendar import HOURS
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.lake import write_whole
from lasthop.pipeline.schema import ratio

FILE = "summary.json"
"""The name of the summary's file in the lake."""

DAYS = 400
"""The largest number of days in a summary, which has the newest ones: a plot of more days is
unreadable."""

BUSIEST = 8
"""The number of networks, the busiest ones, that get a survival curve."""

BINS = 20
"""Number of bins of the efficiency index, from 0 to 1."""


class SummaryTotals(msgspec.Struct):
    """Sums over all days of the log."""

    accepted: int
    delivered: int
    duplicates: int
    misordered: int
    bytes: int
    devices: int
    first: str | None
    last: str | None


class Outcomes(msgspec.Struct):
    """Deliveries of one day of acceptance, by outcome."""

    date: str
    delivered: int
    expired: int
    suppressed: int
    open: int
    other: int


class LatencySummary(msgspec.Struct):
    """Seconds from acceptance (or deliver_after) to delivery, on one day."""

    date: str
    p50: float
    p90: float
    p99: float


class LastHop(msgspec.Struct):
    """Waste and loss of one day as shares; waste is None if nothing was forwarded, loss if nothing
    was read."""

    date: str
    waste: float | None
    loss: float | None


class Week(msgspec.Struct):
    """The mean probability of a link in the 168 hours of the local week."""

    link: str
    devices: int
    hours: list[float]


class Survival(msgspec.Struct):
    """The share of a network's connections that is alive after each number of idle minutes."""

    network: str
    minutes: list[float]
    alive: list[float]


class Carried(msgspec.Struct):
    """What a link carried on a day, and what that cost."""

    date: str
    link: str
    bytes: int
    messages: int
    money: float


class Efficiency(msgspec.Struct):
    """The number of devices and days with an efficiency index in one of the bins."""

    link: str
    bin: int
    count: int


class ChannelSummary(msgspec.Struct):
    """Measurements of one link over all days."""

    link: str
    networks: int
    transmissions: int
    rtt: float | None
    """Median round-trip time in seconds, averaged over days and networks."""
    contention: float | None
    contended: float | None


class Quarantined(msgspec.Struct):
    """The number of lines of a file that are not events, for one problem."""

    problem: str
    file: str
    lines: int


class PipelineSummary(msgspec.Struct, kw_only=True):
    """Everything that the report and the dashboard show, on one page."""

    made_at: Micros
    totals: SummaryTotals
    outcomes: list[Outcomes]
    latency: list[LatencySummary]
    last_hop: list[LastHop]
    read_hours: list[float]
    """Mean reads per day and device in each hour of UTC; empty if nothing was read."""
    calendar: list[Week]
    survival: list[Survival]
    usage: list[Carried]
    energy: list[Efficiency]
    channels: list[ChannelSummary]
    quarantine: list[Quarantined]
    agreement: Agreed = msgspec.field(default_factory=Agreed)
    """How well the model of the live policies agrees with the log, and for whom it does not."""


def summarise(pipeline: Pipeline, now: Micros) -> PipelineSummary:
    """Query the tables for the summary."""
    return PipelineSummary(
        made_at=now,
        totals=_totals(pipeline),
        outcomes=_outcomes(pipeline),
        latency=_latency(pipeline),
        last_hop=_last_hop(pipeline),
        read_hours=_hours(pipeline),
        calendar=_calendar(pipeline),
        survival=_survival(pipeline),
        usage=_usage(pipeline),
        energy=_energy(pipeline),
        channels=_channels(pipeline),
        quarantine=_quarantine(pipeline),
        agreement=agreed(pipeline.gold("agreement")),
    )


def write(pipeline: Pipeline, summary: PipelineSummary) -> None:
    """Write the summary to the lake, completely or not at all."""
    write_whole(pipeline.lake.root / FILE, msgspec.json.encode(summary))


def _totals(pipeline: Pipeline) -> SummaryTotals:
    sums = (
        pipeline.gold("delivery_quality")
        .agg(
            *(
                fn.sum(name).alias(name)
                for name in ("accepted", "delivered", "duplicates", "bytes")
            ),
            fn.sum("order_violations").alias("misordered"),
            fn.min("date").alias("first"),
            fn.max("date").alias("last"),
        )
        .first()
    )
    devices = pipeline.silver("deliveries").agg(fn.count_distinct("app", "dev").alias("n")).first()
    assert sums is not None
    assert devices is not None
    return SummaryTotals(
        accepted=sums["accepted"] or 0,
        delivered=sums["delivered"] or 0,
        duplicates=sums["duplicates"] or 0,
        misordered=sums["misordered"] or 0,
        bytes=sums["bytes"] or 0,
        devices=devices["n"],
        first=_day(sums["first"]),
        last=_day(sums["last"]),
    )


def _day(date: Any) -> str | None:
    return None if date is None else date.isoformat()


def _daily(frame: DataFrame, *measures: Any) -> list[Any]:
    newest = frame.groupBy("date").agg(*measures).orderBy(fn.desc("date")).limit(DAYS)
    return newest.collect()[::-1]


def _outcomes(pipeline: Pipeline) -> list[Outcomes]:
    names = ("delivered", "expired", "suppressed", "open")
    rest = ("sent", "cancelled", "replaced", "aborted", "timed_out", "undeliverable", "reassigned")
    rows = _daily(
        pipeline.gold("delivery_quality"),
        *(fn.sum(name).alias(name) for name in names),
        fn.sum(sum((fn.col(name) for name in rest), fn.lit(0))).alias("other"),
    )
    return [Outcomes(row["date"].isoformat(), *(row[n] for n in (*names, "other"))) for row in rows]


def _latency(pipeline: Pipeline) -> list[LatencySummary]:
    rows = _daily(
        pipeline.silver("deliveries")
        .where(fn.col("delivered_at").isNotNull())
        .withColumn("s", (fn.col("delivered_at") - fn.greatest("accepted_at", "after")) / 1e6),
        *(fn.percentile_approx("s", p / 100, 1000).alias(f"p{p}") for p in (50, 90, 99)),
    )
    return [
        LatencySummary(row["date"].isoformat(), row["p50"], row["p90"], row["p99"]) for row in rows
    ]


def _last_hop(pipeline: Pipeline) -> list[LastHop]:
    rows = _daily(
        pipeline.gold("last_hop"),
        ratio(fn.sum("wasted"), fn.sum("forwarded")).alias("waste"),
        ratio(fn.sum("lost"), fn.sum("read_online")).alias("loss"),
    )
    return [LastHop(row["date"].isoformat(), row["waste"], row["loss"]) for row in rows]


def _hours(pipeline: Pipeline) -> list[float]:
    profiles = pipeline.gold("read_profiles").where(fn.col("hours").isNotNull())
    row = profiles.agg(*(fn.avg(fn.col("hours")[h]).alias(f"h{h}") for h in range(24))).first()
    return [] if row is None or row["h0"] is None else [row[f"h{h}"] for h in range(24)]


def _calendar(pipeline: Pipeline) -> list[Week]:
    mean = [fn.avg(fn.col("hours")[h]).alias(f"h{h}") for h in range(HOURS)]
    devices = fn.count("*").alias("devices")
    table = pipeline.gold("link_calendar").groupBy("link").agg(devices, *mean)
    rows = table.orderBy(fn.desc("devices")).limit(4).collect()
    return [Week(row["link"], row["devices"], [row[f"h{h}"] for h in range(HOURS)]) for row in rows]


def _survival(pipeline: Pipeline) -> list[Survival]:
    curves = pipeline.gold("survival")
    weight = fn.sum(fn.col("answered") + fn.col("missed")).alias("weight")
    busiest = curves.groupBy("network").agg(weight).orderBy(fn.desc("weight")).limit(BUSIEST)
    rows = curves.join(busiest, "network").orderBy(fn.desc("weight"), "interval").collect()
    found: dict[str, Survival] = {}
    for row in rows:
        curve = found.setdefault(row["network"], Survival(row["network"], [], []))
        curve.minutes.append(row["interval"] / 60e6)
        curve.alive.append(row["survival"])
    return list(found.values())


def _usage(pipeline: Pipeline) -> list[Carried]:
    sums = [fn.sum(name).alias(name) for name in ("bytes", "messages", "money")]
    links = pipeline.gold("usage").groupBy("date", "link").agg(*sums)
    rows = links.orderBy(fn.desc("date"), "link").limit(DAYS).collect()[::-1]
    return [
        Carried(
            row["date"].isoformat(), row["link"], row["bytes"], row["messages"], row["money"] or 0.0
        )
        for row in rows
    ]


def _energy(pipeline: Pipeline) -> list[Efficiency]:
    place = fn.least(fn.floor(fn.col("efficiency") * BINS), fn.lit(BINS - 1)).alias("bin")
    counts = pipeline.gold("energy").groupBy("link", place).agg(fn.count("*").alias("n"))
    rows = counts.where(fn.col("bin").isNotNull()).orderBy("link", "bin").collect()
    return [Efficiency(row["link"], row["bin"], row["n"]) for row in rows]


def _channels(pipeline: Pipeline) -> list[ChannelSummary]:
    rows = (
        pipeline.gold("channels")
        .groupBy("link")
        .agg(
            fn.count_distinct("network").alias("networks"),
            fn.sum("transmissions").alias("transmissions"),
            fn.avg("rtt_p50").alias("rtt"),
            fn.avg("contention").alias("contention"),
            fn.avg("contended").alias("contended"),
        )
        .orderBy("link")
        .collect()
    )
    return [
        ChannelSummary(
            row["link"],
            row["networks"],
            row["transmissions"],
            None if row["rtt"] is None else row["rtt"] / 1e6,
            row["contention"],
            row["contended"],
        )
        for row in rows
    ]


def _quarantine(pipeline: Pipeline) -> list[Quarantined]:
    rows = quarantined(pipeline.spark, pipeline.lake).limit(20).collect()
    return [Quarantined(row["problem"], row["file"], row["lines"]) for row in rows]
