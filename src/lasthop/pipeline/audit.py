"""Counts of the rows in tables, of events that belong to no delivery, and of devices whose log
agrees with the model of their live policies."""

from __future__ import annotations

from functools import reduce

import msgspec
from pyspark.sql import DataFrame, functions as fn

from lasthop.pipeline.silver import about_a_delivery

TRUSTED = 0.999
"""The least share of a device's messages that the model must treat as the log does: below it, the
model does not know this device, and its estimates are not used for learning."""

NAMED = 20
"""How many of the devices or stores that something is wrong with are named; all are counted."""


class Disagreeing(msgspec.Struct):
    """A device whose log the model of the live policies does not reproduce."""

    store: str
    app: str
    dev: str
    messages: int
    agreed: int
    difference: str
    """The first message about which the two differ."""


class Agreed(msgspec.Struct):
    """How well the model of the live policies agrees with the log, over all devices."""

    devices: int = 0
    trusted: int = 0
    """Devices for which at least 99.9 % of messages are treated alike."""
    messages: int = 0
    agreed: int = 0
    worst: list[Disagreeing] = []
    """The devices that are not trusted, the worst first; at most 20."""

    @property
    def share(self) -> float:
        """The share of messages that the model treats as the log does; 1 without messages."""
        return self.agreed / self.messages if self.messages else 1.0


def agreed(agreement: DataFrame) -> Agreed:
    """Sum the table of agreement up."""
    distrusted = fn.col("share") < TRUSTED
    sums = agreement.agg(
        fn.count("*").alias("devices"),
        fn.count(fn.when(distrusted, 1)).alias("distrusted"),
        fn.sum("messages").alias("messages"),
        fn.sum("agreed").alias("agreed"),
    ).first()
    if sums is None or not sums["devices"]:
        return Agreed()
    found = Agreed(
        sums["devices"], sums["devices"] - sums["distrusted"], sums["messages"], sums["agreed"]
    )
    if sums["distrusted"]:
        worst = agreement.where(distrusted).orderBy("share", "store", "app", "dev").limit(NAMED)
        found.worst = [
            Disagreeing(*(row[name] for name in Disagreeing.__struct_fields__))
            for row in worst.collect()
        ]
    return found


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
