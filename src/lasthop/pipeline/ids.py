"""Which event ids came, how often, and which never came: exact, and without sorting or moving
events.

An event's number is one bit of a block of 64 neighbours, so that a block is a row of fixed width,
which Spark keeps in a hash table; there are 64 times fewer blocks than events.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as fn

ID = ("gw", "boot", "n")
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
    return blocks(events, "date", "gw", "boot").where(copied).select("date").distinct()


def missing_offsets(events: DataFrame) -> DataFrame:
    """Return how many offsets of each gateway never came: `n` has no gaps over the life of a store.

    Nothing can be said about offsets before the oldest and after the newest event. This takes one
    shuffle of blocks, day by day, and one of a row for each day.
    """
    whole = (
        blocks(events, "gw", "date")
        .groupBy("gw")
        .agg(
            fn.min("first").alias("first"),
            fn.max("last").alias("last"),
            fn.sum(fn.bit_count("seen")).alias("events"),
        )
    )
    return whole.withColumn("missing", fn.col("last") - fn.col("first") + 1 - fn.col("events"))
