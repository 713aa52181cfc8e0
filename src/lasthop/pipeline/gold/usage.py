"""What devices have spent, and how much of their limits that was."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, functions as fn

from lasthop.events import Kind
from lasthop.pipeline.schema import conform, ratio
from lasthop.pipeline.silver import DAY, DELIVERY, FLAG, NUMBER, REAL, TEXT, table

USAGE = table(
    app=TEXT,
    dev=TEXT,
    link=TEXT,
    queue=TEXT,
    messages=NUMBER,
    bytes=NUMBER,
    money=REAL,
    date=DAY,
)

LIMITS = table(
    app=TEXT,
    dev=TEXT,
    period=TEXT,
    begins=DAY,
    measure=TEXT,
    link=TEXT,
    queues=TEXT,
    amount=NUMBER,
    used=REAL,
    share=REAL,
    exceeded=FLAG,
)

_LIMIT = "amount:bigint,measure:string,period:string,link:string,queues:array<string>"
_TERMS = f"struct<limits:array<struct<{_LIMIT}>>>"


def usage(events: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Return messages, bytes and money (in millionths) of every device, day, link and queue.

    Every transmission that was handed to a link counts, on the UTC day on which that happened. The
    queue is that of the delivery. This takes one shuffle by delivery, and one by device.
    """
    kind = fn.col("kind")
    # What a carrier has said afterwards that a transmission cost adds money, and no transmission.
    left = kind == Kind.TRANSMITTED
    sent = events.where(left | ((kind == Kind.COUNTED) & (fn.col("msg") != 0))).select(
        "date",
        *DELIVERY,
        "link",
        fn.when(left, fn.col("bytes")).otherwise(0).alias("bytes"),
        "cost",
        left.cast("int").alias("left"),
    )
    queues = deliveries.where(fn.col("queue") != "").select(*DELIVERY, "queue")
    rows = (
        sent.join(queues, [*DELIVERY], "left")
        .fillna({"queue": ""})
        .groupBy("date", "app", "dev", "link", "queue")
        .agg(
            fn.sum("left").alias("messages"),
            fn.sum("bytes").alias("bytes"),
            fn.sum("cost").alias("money"),
        )
    )
    return conform(rows, USAGE)


def limits(usage: DataFrame, events: DataFrame) -> DataFrame:
    """Return the amount of every limit and how much of it was used, period by period.

    Limits are those of a device's newest preferences. Periods are UTC days, ISO weeks and months;
    `share` is used / amount. This takes one shuffle by device: a device has at most 64 limits, so
    that the join within it stays small.
    """
    newest = Window.partitionBy("app", "dev").orderBy(fn.desc("t"), fn.desc("n"))
    told = (
        events.where(fn.col("kind") == Kind.PREFERENCES_CHANGED)
        .withColumn("place", fn.row_number().over(newest))
        .where(fn.col("place") == 1)
        .select("app", "dev", fn.explode(fn.from_json("terms", _TERMS)["limits"]).alias("limit"))
        .select("app", "dev", "limit.*")
        .withColumnRenamed("link", "only")
    )
    covered = (fn.col("only").isNull() | (fn.col("only") == fn.col("link"))) & (
        fn.col("queues").isNull()
        | (fn.size("queues") == 0)
        | fn.array_contains("queues", fn.col("queue"))
    )
    taken = (
        fn.when(fn.col("measure") == "bytes", fn.col("bytes"))
        .when(fn.col("measure") == "money", fn.col("money"))
        .otherwise(fn.col("messages"))
    )
    rows = (
        told.join(usage, ["app", "dev"])
        .where(covered)
        .groupBy(
            "app",
            "dev",
            "period",
            _begins().alias("begins"),
            "measure",
            fn.coalesce("only", fn.lit("")).alias("link"),
            fn.coalesce(fn.array_join("queues", "+"), fn.lit("")).alias("queues"),
            "amount",
        )
        .agg(fn.sum(taken).alias("used"))
        .withColumn("share", ratio(fn.col("used"), fn.col("amount")))
        .withColumn("exceeded", fn.col("used") > fn.col("amount"))
    )
    return conform(rows, LIMITS)


def _begins() -> Column:
    period, day = fn.col("period"), fn.col("date")
    return (
        fn.when(period == "week", fn.trunc(day, "week"))
        .when(period == "month", fn.trunc(day, "month"))
        .otherwise(day)
    )
