"""Counting what there is, and what has no place."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, functions as fn

from lasthop.pipeline.silver import about_a_delivery


def counted(tables: dict[str, DataFrame]) -> dict[str, int]:
    """How many rows each table has, in one job."""
    counts = [
        frame.agg(fn.lit(name).alias("name"), fn.count("*").alias("rows"))
        for name, frame in tables.items()
    ]
    found = {row["name"]: row["rows"] for row in reduce(DataFrame.unionAll, counts).collect()}
    return {name: found[name] for name in tables}


def orphans(events: DataFrame, deliveries: DataFrame) -> int:
    """Events of deliveries whose beginning is not here: every delivery has counted the events that
    tell of it, and what is left has none."""
    known = deliveries.agg(fn.sum("events").alias("events")).first()
    return events.where(about_a_delivery()).count() - int((known and known["events"]) or 0)
