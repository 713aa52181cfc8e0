"""How long idle connections survive, by network, and how long a heartbeat can wait."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window, functions as fn

from lasthop.clock import SECOND
from lasthop.pipeline.schema import conform, ratio
from lasthop.pipeline.silver import NUMBER, REAL, TEXT, table

STEP = 15 * SECOND
"""Intervals are distinguished in steps of a quarter of a minute: address translators forget
connections after round numbers of them."""

SAFE = 0.98
"""The survival that an interval needs: a lost connection costs a reconnect, as much as dozens of
pings."""

ENOUGH = 20
"""Observations that an interval needs before it is trusted."""

SURVIVAL = table(
    network=TEXT,
    link=TEXT,
    interval=NUMBER,
    answered=NUMBER,
    missed=NUMBER,
    at_risk=NUMBER,
    survival=REAL,
)

BEST_INTERVALS = table(
    network=TEXT, link=TEXT, interval=NUMBER, survival=REAL, observations=NUMBER, devices=NUMBER
)


def survival(heartbeats: DataFrame) -> DataFrame:
    """Return the share of idle connections that survive at least `interval` microseconds, for each
    network.

    A connection that answered after a longer silence would have answered after this one; one that
    was dead after a shorter silence would be dead now. So survival(i) = answered at i or later,
    divided by that and the missed at i or earlier. It never rises with i. This takes one shuffle by
    network.
    """
    step = (fn.col("interval") / STEP).cast("long") * STEP
    counted = (
        heartbeats.where((fn.col("interval") > 0) & (fn.col("network") != ""))
        .groupBy("network", "link", step.alias("interval"))
        .agg(
            fn.count(fn.when(fn.col("answered"), 1)).alias("answered"),
            fn.count(fn.when(~fn.col("answered"), 1)).alias("missed"),
        )
    )
    network = Window.partitionBy("network", "link").orderBy("interval")
    later = network.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    earlier = network.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    lived = fn.sum("answered").over(later)
    rows = counted.withColumn("at_risk", lived + fn.sum("missed").over(earlier)).withColumn(
        "survival", ratio(lived, fn.col("at_risk"))
    )
    return conform(rows, SURVIVAL)


def best_intervals(survival: DataFrame, heartbeats: DataFrame) -> DataFrame:
    """Return the longest interval of each network that at least 98 % of idle connections
    survive."""
    devices = heartbeats.groupBy("network", "link").agg(
        fn.approx_count_distinct("dev").alias("devices")
    )
    rows = (
        survival.where((fn.col("survival") >= SAFE) & (fn.col("at_risk") >= ENOUGH))
        .groupBy("network", "link")
        .agg(
            fn.max("interval").alias("interval"),
            fn.max_by("survival", "interval").alias("survival"),
            fn.max_by("at_risk", "interval").alias("observations"),
        )
        .join(devices, ["network", "link"])
    )
    return conform(rows, BEST_INTERVALS)
