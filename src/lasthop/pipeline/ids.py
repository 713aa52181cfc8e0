"""Which ids came, how often, and which never did: exact, and without sorting or moving them.

An event's number is one bit of a block of 64 neighbours, so that a block is a row of fixed width,
which Spark keeps in a hash table and of which there are 64 times fewer than of events.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as fn

ID = ("gw", "boot", "n")
"""What tells an event from all others."""


def blocks(events: DataFrame, *keys: str) -> DataFrame:
    """For every 64 neighbouring numbers with the same keys: which there are, and how many rows.

    One shuffle of blocks.
    """
    return events.groupBy(*keys, fn.shiftright("n", 6).alias("block")).agg(
        fn.bit_or(fn.expr("shiftleft(1L, cast(n & 63 as int))")).alias("seen"),
        fn.min("n").alias("first"),
        fn.max("n").alias("last"),
        fn.count("*").alias("rows"),
    )


def days_with_copies(events: DataFrame) -> DataFrame:
    """The days on which an event came more than once."""
    copied = fn.col("rows") > fn.bit_count("seen")
    return blocks(events, "date", "gw", "boot").where(copied).select("date").distinct()


def missing_offsets(events: DataFrame) -> DataFrame:
    """How many offsets of each gateway never came: `n` is dense over the life of a store.

    Of what is before the oldest and after the newest that did come, nothing can be said. One
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
