"""How users read: what the unified algorithm averages, over the whole log instead of 16 reads."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window, functions as fn
from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

from lasthop.clock import DAY, Micros
from lasthop.pipeline.gold.quality import ACCURACY
from lasthop.pipeline.schema import conform, ratio
from lasthop.pipeline.silver import DELIVERY, NUMBER, REAL, TEXT, table

WAKING: Micros = DAY * 11 // 16
"""The part of a day in which reads can happen at all: 16 and a half hours."""

READ_PROFILES = StructType(
    [
        *table(
            app=TEXT,
            dev=TEXT,
            topic=TEXT,
            days=REAL,
            reads=NUMBER,
            reads_per_day=REAL,
            wanted=REAL,
            offline_share=REAL,
            interval_mean=REAL,
            interval_p90=NUMBER,
            arrivals=NUMBER,
            arrivals_per_day=REAL,
            expiring_share=REAL,
            lifetime_mean=REAL,
            fallen_share=REAL,
            fall_age_p90=NUMBER,
            prefetch_limit=NUMBER,
            expiration_threshold=NUMBER,
            retraction_delay=NUMBER,
        ).fields,
        StructField("hours", ArrayType(DoubleType())),
    ]
)

FAR_ABOVE = 10
"""How many times the waking interval between reads the mean lifetime must be before the interval
becomes the threshold."""

MANY_FALLS = 0.02


def read_profiles(
    reads: DataFrame, deliveries: DataFrame, rank_changes: DataFrame, *, until: Micros
) -> DataFrame:
    """Measure the reads of every device and topic, from its first event until the end of the log.

    - **wanted**: mean number asked for in a read that names one; where none does, the mean seen.
    - **interval**: between reads; **offline share**: of the reads, those without contact.
    - **hours**: reads per day in each hour of UTC.
    - **prefetch limit**: twice what a read takes; **expiration threshold**: the waking time between
      reads where events live ten times as long, else none; **retraction delay**: the age by which
      nine of ten falls below the first rank have happened, where at least 2 % of events fall (the
      last-hop paper, section 3).

    Each input is grouped by device and topic, in one shuffle each.
    """
    key = ["app", "dev", "topic"]
    last = fn.lag("read_at").over(Window.partitionBy(*key).orderBy("read_at", "n"))
    hour = fn.hour(fn.timestamp_micros("read_at"))
    looked = (
        reads.withColumn("interval", fn.col("read_at") - last)
        .groupBy(*key)
        .agg(
            fn.count("*").alias("reads"),
            fn.min("read_at").alias("first_read"),
            fn.avg(fn.when(fn.col("wanted") >= 0, fn.col("wanted"))).alias("asked"),
            fn.avg(fn.col("offline").cast("double")).alias("offline_share"),
            fn.avg("interval").alias("interval_mean"),
            fn.percentile_approx("interval", 0.9, ACCURACY).alias("interval_p90"),
            fn.array(*(fn.count(fn.when(hour == h, 1)) for h in range(24))).alias("by_hour"),
        )
    )
    fell = (
        rank_changes.join(
            deliveries.select(*DELIVERY, "accepted_at", "rank").withColumnRenamed(
                "rank", "first_rank"
            ),
            [*DELIVERY],
        )
        .where(fn.col("rank") < fn.col("first_rank"))
        .groupBy(*key)
        .agg(
            fn.count("*").alias("falls"),
            fn.percentile_approx(fn.col("t") - fn.col("accepted_at"), 0.9, ACCURACY).alias(
                "fall_age_p90"
            ),
        )
    )
    lifetime = fn.when(fn.col("before") > 0, fn.col("before") - fn.col("accepted_at"))
    came = (
        deliveries.where(fn.col("topic") != "")
        .groupBy(*key)
        .agg(
            fn.count("*").alias("arrivals"),
            fn.min("accepted_at").alias("first_arrival"),
            fn.count(lifetime).alias("expiring"),
            fn.avg(lifetime).alias("lifetime_mean"),
            fn.count("read_at").alias("seen"),
        )
    )
    since = fn.least("first_read", "first_arrival")
    days = fn.greatest((fn.lit(until) - since) / DAY, fn.lit(1.0))
    awake = fn.col("interval_mean") * WAKING / DAY
    limit = fn.greatest(fn.lit(1), fn.round(2 * fn.col("wanted")))
    many = fn.col("fallen_share") >= MANY_FALLS
    rows = (
        came.join(looked, key, "left")
        .join(fell, key, "left")
        .fillna({"reads": 0, "falls": 0})
        .withColumn("days", days)
        .withColumn("reads_per_day", fn.col("reads") / fn.col("days"))
        .withColumn("arrivals_per_day", fn.col("arrivals") / fn.col("days"))
        .withColumn("wanted", fn.coalesce("asked", ratio(fn.col("seen"), fn.col("reads"))))
        .withColumn("expiring_share", fn.col("expiring") / fn.col("arrivals"))
        .withColumn("fallen_share", fn.col("falls") / fn.col("arrivals"))
        .withColumn("prefetch_limit", fn.when(fn.col("reads") > 0, limit))
        .withColumn(
            "expiration_threshold",
            fn.when(fn.col("lifetime_mean") >= FAR_ABOVE * awake, awake),
        )
        .withColumn("retraction_delay", fn.when(many, fn.col("fall_age_p90")).otherwise(0))
        .withColumn("hours", fn.transform("by_hour", lambda count: count / fn.col("days")))
    )
    return conform(rows, READ_PROFILES)
