"""Counts of the rows in tables, and of events that belong to no delivery."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, functions as fn

from lasthop.pipeline.silver import about_a_delivery


def counted(tables: dict[str, DataFrame]) -> dict[str, int]:
    """Return how many rows each table has, counted in one job."""
    counts = [
        frame.agg(fn.lit(name).alias("name"), fn.count("*").alias("rows"))
        for name, frame in tables.items()
    ]
    found = {row["name"]: row["rows"] for row in reduce(DataFrame.unionAll, counts).collect()}
    return {name: found[name] for name in tables}


def orphans(events: DataFrame, deliveries: DataFrame) -> int:
    """Return how many events belong to deliveries whose beginning is not in the log: all events
    about deliveries, less the events that the known deliveries have counted."""
    known = deliveries.agg(fn.sum("events").alias("events")).first()
    return events.where(about_a_delivery()).count() - int((known and known["events"]) or 0)
