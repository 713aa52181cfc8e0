"""Which event ids came, how often, and which never came: exact, and without sorting or moving
events.

An event's number is one bit of a block of 64 neighbours, so that a block is a row of fixed width,
which Spark keeps in a hash table; there are 64 times fewer blocks than events.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as fn

from lasthop.pipeline.schema import EVENT

ID = ("store", "boot", "n")
"""The columns that identify an event."""


def blocks(events: DataFrame, *keys: str) -> DataFrame:
    """Return for every 64 neighbouring numbers with the same keys which of them exist, and how many
    rows.

    This takes one shuffle of blocks.
    """
    return events.groupBy(*keys, fn.shiftright("n", 6).alias("block")).agg(
        fn.bit_or(fn.expr("shiftleft(1L, cast(n & 63 as int))")).alias("seen"),
        fn.min("n").alias("first"),
        fn.max("n").alias("last"),
        fn.count("*").alias("rows"),
    )


def days_with_copies(events: DataFrame) -> DataFrame:
    """Return the days on which an event came more than once."""
    copied = fn.col("rows") > fn.bit_count("seen")
    return blocks(events, "date", "store", "boot").where(copied).select("date").distinct()


def clashes(events: DataFrame) -> DataFrame:
    """Return the ids that events with different contents share: these are no copies.

    This takes one shuffle of a row for each event, so give it only days with copies.
    """
    content = fn.xxhash64(*EVENT.fieldNames())
    return (
        events.groupBy(*ID)
        .agg(fn.min(content).alias("one"), fn.max(content).alias("other"))
        .where(fn.col("one") != fn.col("other"))
        .select(*ID)
    )


def offsets(events: DataFrame) -> DataFrame:
    """Return how many offsets of each store never came, and how many came `twice`: `n` has no gaps
    over the life of a store, and is never given out again.

    Copies of an event do not count: they have the same day and the same boot. Nothing can be said
    about offsets before the oldest and after the newest event. This takes one shuffle of blocks,
    day by day, one of blocks, and one of a row for each task.
    """
    whole = (
        blocks(events, "store", "date", "boot")
        .groupBy("store", "block")
        .agg(
            fn.min("first").alias("first"),
            fn.max("last").alias("last"),
            fn.bit_or("seen").alias("seen"),
            fn.sum(fn.bit_count("seen")).alias("given"),
        )
        .groupBy("store")
        .agg(
            fn.min("first").alias("first"),
            fn.max("last").alias("last"),
            fn.sum(fn.bit_count("seen")).alias("events"),
            fn.sum("given").alias("given"),
        )
    )
    return (
        whole.withColumn("missing", fn.col("last") - fn.col("first") + 1 - fn.col("events"))
        .withColumn("twice", fn.col("given") - fn.col("events"))
        .drop("given")
    )
