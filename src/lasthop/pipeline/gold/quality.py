"""How well messages were delivered, by app, link and hour: the measures of Odin's evaluation."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, functions as fn

from lasthop.pipeline.schema import ENDS, conform, ratio
from lasthop.pipeline.silver import DAY, NUMBER, REAL, TEXT, table

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

ACCURACY = 10_000
"""The accuracy of approximate percentiles: the rank is right to one in ten thousand."""

DELIVERY_QUALITY = table(
    app=TEXT,
    link=TEXT,
    hour=NUMBER,
    accepted=NUMBER,
    **{end.value: NUMBER for end in ENDS},
    open=NUMBER,
    loss=REAL,
    duplicates=NUMBER,
    order_violations=NUMBER,
    **{f"latency_{name}": NUMBER for name in PERCENTILES},
    transmissions=NUMBER,
    bytes=NUMBER,
    bytes_per_delivered=REAL,
    overhead=REAL,
    cost=REAL,
    date=DAY,
)
"""Measures of the deliveries accepted in an hour (UTC), by the link that they took."""


def delivery_quality(deliveries: DataFrame) -> DataFrame:
    """Compute Odin's measures (section 5) for every app, link and hour of acceptance.

    - **loss**: of the deliveries that arrived, expired, timed out or were undeliverable, the share
      that did not arrive. A delivery that is still open is not lost.
    - **duplicates**: how many times a message was delivered again.
    - **order violations**: deliveries that came after one that was released later, in the same lane
      (source, device, queue, priority). Lanes are judged day by day of acceptance. Nobody promised
      an order for the messages of a ranked topic (those that name a topic): they are read best
      first.
    - **latency**: from acceptance, or from `deliver_after` where that is later, to the delivery; in
      microseconds.
    - **bytes per delivered**: everything that was handed to links, divided by what arrived.
    - **overhead**: the share of those bytes that is not the body of a message that arrived.

    This takes one shuffle by lane and one by group.
    """
    lane = Window.partitionBy("date", "store", "app", "dev", "source", "queue", "priority")
    before = lane.orderBy("delivered_n").rowsBetween(Window.unboundedPreceding, -1)
    ordered = fn.when(fn.coalesce("topic", fn.lit("")) == "", fn.col("released_n"))
    overtaken = fn.max(ordered).over(before) > ordered
    arrived = fn.col("delivered_at").isNotNull()
    begins = fn.greatest("accepted_at", "after")
    latency = fn.when(arrived, fn.greatest(fn.col("delivered_at") - begins, fn.lit(0)))
    rows = (
        deliveries.withColumn("misordered", fn.when(arrived, overtaken))
        .withColumn("latency", latency)
        .withColumn("hour", fn.hour(fn.timestamp_micros("accepted_at")))
        .groupBy("date", "app", "link", "hour")
        .agg(
            fn.count("*").alias("accepted"),
            *(_count(fn.col("outcome") == end).alias(end.value) for end in ENDS),
            _count(fn.col("outcome") == "").alias("open"),
            fn.sum(fn.greatest(fn.col("copies") - 1, fn.lit(0))).alias("duplicates"),
            _count(fn.col("misordered")).alias("order_violations"),
            *(
                fn.percentile_approx("latency", share, ACCURACY).alias(f"latency_{name}")
                for name, share in PERCENTILES.items()
            ),
            fn.sum("transmissions").alias("transmissions"),
            fn.sum("bytes").alias("bytes"),
            fn.sum(fn.when(arrived, fn.col("size")).otherwise(0)).alias("useful"),
            fn.sum("cost").alias("cost"),
        )
    )
    lost = fn.col("expired") + fn.col("timed_out") + fn.col("undeliverable")
    came = fn.col("delivered") + fn.col("sent")
    return conform(
        rows.withColumn("loss", ratio(lost, lost + came))
        .withColumn("bytes_per_delivered", ratio(fn.col("bytes"), fn.col("delivered")))
        .withColumn("overhead", ratio(fn.col("bytes") - fn.col("useful"), fn.col("bytes"))),
        DELIVERY_QUALITY,
    )


def _count(condition: Column) -> Column:
    return fn.count(fn.when(condition, 1))
