"""When a device has which link: the calendar that the McGill thesis asks people to type in."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, functions as fn
from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

from lasthop.events import Kind
from lasthop.pipeline.schema import conform
from lasthop.pipeline.silver import NUMBER, TEXT, table

HOURS = 7 * 24

DOUBT = 2.0
"""The weight of the broader average, in hours of observation: after two weeks, one hour of a
weekday weighs as much as the average over the same hour of all days."""

LINK_HOURS = table(app=TEXT, dev=TEXT, zone=TEXT, link=TEXT, hour=NUMBER, seen=NUMBER, up=NUMBER)

LINK_CALENDAR = StructType(
    [
        *table(app=TEXT, dev=TEXT, zone=TEXT, link=TEXT, weeks=NUMBER).fields,
        StructField("hours", ArrayType(DoubleType())),
    ]
)


def zones(events: DataFrame) -> DataFrame:
    """Return the zone that each device last reported; UTC for those that never did."""
    preferred = fn.get_json_object("terms", "$.zone")
    told = (
        events.where(fn.col("kind").isin(Kind.CONTEXT_CHANGED, Kind.PREFERENCES_CHANGED))
        .withColumn("zone", fn.coalesce(fn.nullif(fn.col("zone"), fn.lit("")), preferred))
        .where(fn.col("zone") != "")
    )
    return told.groupBy("app", "dev").agg(fn.max_by("zone", fn.struct("t", "n")).alias("zone"))


def link_hours(contacts: DataFrame, zones: DataFrame, *, until: int) -> DataFrame:
    """Return for each device, link and hour of its local week in how many such hours the device was
    observed, and in how many of them the link was up at some moment.

    A device is observed from its first contact until `until`, the end of the log; a contact that is
    not over reaches until then. This takes one shuffle by device; hours are made where the device's
    rows are.
    """
    ended = fn.coalesce("ended_at", fn.lit(until))
    local = contacts.join(zones, ["app", "dev"], "left").fillna({"zone": "UTC"})
    begins = fn.min("started_at").over(Window.partitionBy("app", "dev"))
    known = local.withColumn("since", begins).withColumn("ended", ended)
    up = (
        known.withColumn("at", fn.explode(_hours("started_at", "ended")))
        .select("app", "dev", "link", "at")
        .distinct()
        .withColumn("up", fn.lit(1))
    )
    links = known.groupBy("app", "dev", "zone", "link").agg(fn.min("since").alias("since"))
    observed = links.withColumn("until", fn.lit(until)).withColumn(
        "at", fn.explode(_hours("since", "until"))
    )
    moment = fn.from_utc_timestamp(fn.timestamp_seconds("at"), fn.col("zone"))
    rows = (
        observed.join(up, ["app", "dev", "link", "at"], "left")
        .withColumn("hour", fn.weekday(moment) * 24 + fn.hour(moment))
        .groupBy("app", "dev", "zone", "link", "hour")
        .agg(fn.count("*").alias("seen"), fn.count("up").alias("up"))
    )
    return conform(rows, LINK_HOURS)


def _hours(start: str, end: str) -> Column:
    """Return the hours (as seconds of UTC) that a span of microseconds touches."""
    first = fn.floor(fn.col(start) / 3_600_000_000) * 3600
    last = fn.greatest(fn.floor((fn.col(end) - 1) / 3_600_000_000) * 3600, first)
    return fn.sequence(first, last, fn.lit(3600).cast("long"))


def link_calendar(link_hours: DataFrame) -> DataFrame:
    """Return the probability of each link in each of the 168 hours of a device's local week, from
    Monday 0:00 on, as `lasthop.decision.link_calendar` reads it.

    Small numbers are smoothed: an hour of the week is averaged with the same hour of all days,
    which is averaged with the link's share of all hours. p = (up + 2 q) / (seen + 2), with q the
    broader probability.
    """
    link = Window.partitionBy("app", "dev", "link")
    clock = Window.partitionBy("app", "dev", "link", fn.col("hour") % 24)
    overall = fn.sum("up").over(link) / fn.sum("seen").over(link)
    daily = (fn.sum("up").over(clock) + DOUBT * fn.col("overall")) / (
        fn.sum("seen").over(clock) + DOUBT
    )
    cell = (fn.col("up") + DOUBT * fn.col("daily")) / (fn.col("seen") + DOUBT)
    rows = (
        link_hours.withColumn("overall", overall)
        .withColumn("daily", daily)
        .withColumn("p", fn.round(cell, 6))
        .groupBy("app", "dev", "zone", "link")
        .agg(
            fn.max("seen").alias("weeks"),
            fn.map_from_entries(fn.collect_list(fn.struct("hour", "p"))).alias("cells"),
            fn.map_from_entries(fn.collect_set(fn.struct(fn.col("hour") % 24, "daily"))).alias(
                "clock"
            ),
            fn.max("overall").alias("overall"),
        )
    )
    # A new device has not been observed in every hour of a week.
    hours = fn.transform(
        fn.sequence(fn.lit(0), fn.lit(HOURS - 1)),
        lambda hour: fn.coalesce(
            fn.element_at("cells", hour.cast("long")),
            fn.element_at("clock", (hour % 24).cast("long")),
            fn.col("overall"),
        ),
    )
    return conform(rows.withColumn("hours", hours), LINK_CALENDAR)
