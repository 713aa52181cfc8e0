"""Measurements of links and access points: round trips, throughput, contention."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as fn

from lasthop.events import Kind
from lasthop.pipeline.gold.quality import ACCURACY
from lasthop.pipeline.schema import conform, ratio
from lasthop.pipeline.silver import DAY, NUMBER, REAL, TEXT, table

CONTENDED = 1.25
"""The contention from which on a link counts as contended: it queues or loses more than a fifth of
what is put into it, as the transmission algorithm sees it."""

CHANNELS = table(
    app=TEXT,
    link=TEXT,
    network=TEXT,
    devices=NUMBER,
    samples=NUMBER,
    rtt_p50=NUMBER,
    rtt_p95=NUMBER,
    throughput_p50=NUMBER,
    contention=REAL,
    contended=REAL,
    transmissions=NUMBER,
    bytes=NUMBER,
    cost=REAL,
    date=DAY,
)


def channels(events: DataFrame) -> DataFrame:
    """Measure links and the networks behind them (an operator, an access point), day by day.

    - **rtt**: round trips of heartbeats and of traffic, in microseconds, with no clocks compared.
    - **throughput**: bytes a second, as measured on traffic that flowed anyway.
    - **contention**: the mean ratio of the rate at which data was sent to the rate at which it came
      in (McGill thesis, section 3.5), 1 where nothing is queued; **contended** is the share of
      samples above 1.25.

    This takes one shuffle by network.
    """
    kind = fn.col("kind")
    measured = kind == Kind.MEASURED
    transmitted = kind == Kind.TRANSMITTED
    timed = (measured | (kind == Kind.HEARTBEAT)) & (fn.col("rtt") >= 0)
    ratio_seen = measured & (fn.col("contention") > 0)
    rows = (
        events.where((measured | transmitted | (kind == Kind.HEARTBEAT)) & (fn.col("link") != ""))
        .groupBy("date", "app", "link", "network")
        .agg(
            fn.approx_count_distinct("dev").alias("devices"),
            fn.count(fn.when(measured, 1)).alias("samples"),
            fn.percentile_approx(fn.when(timed, fn.col("rtt")), 0.5, ACCURACY).alias("rtt_p50"),
            fn.percentile_approx(fn.when(timed, fn.col("rtt")), 0.95, ACCURACY).alias("rtt_p95"),
            fn.percentile_approx(
                fn.when(measured & (fn.col("bytes") > 0), fn.col("bytes")), 0.5, ACCURACY
            ).alias("throughput_p50"),
            fn.avg(fn.when(ratio_seen, fn.col("contention"))).alias("contention"),
            fn.count(fn.when(ratio_seen & (fn.col("contention") > CONTENDED), 1)).alias("crowded"),
            fn.count(fn.when(ratio_seen, 1)).alias("compared"),
            fn.count(fn.when(transmitted, 1)).alias("transmissions"),
            fn.sum(fn.when(transmitted, fn.col("bytes")).otherwise(0)).alias("bytes"),
            fn.sum(fn.when(transmitted, fn.col("cost")).otherwise(0.0)).alias("cost"),
        )
    )
    return conform(
        rows.withColumn("contended", ratio(fn.col("crowded"), fn.col("compared"))), CHANNELS
    )
