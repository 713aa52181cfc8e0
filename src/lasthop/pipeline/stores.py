"""Whose events these are: every gateway's store has an incarnation that no other store shares.

Gateways may have the same name, and then the same boots and numbers. Their events are told apart by
the incarnation: each event's own, or the one that the log's `gateway_started` events name. A log
that names none is told apart by its directory and the gateway's name. What cannot be told apart is
refused, and never merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from pyspark.sql import DataFrame, functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from lasthop.errors import Conflict

_TOLD = StructType([StructField(name, StringType()) for name in ("log", "gw", "told")])

ASIDE = "give the log of every gateway a directory of its own, and make the tables in a new lake"


class LogOwner(msgspec.Struct):
    """A gateway with events in one directory, and what they say about its store."""

    log: str
    """The directory, relative to the one that was read; empty for that one itself."""
    gateway: str
    incarnations: list[str] = []
    bare: bool = False
    """Whether there are events that do not name an incarnation themselves."""

    @property
    def store(self) -> str:
        """The store of the events that do not name one."""
        return self.incarnations[0] if self.incarnations else f"{self.log}:{self.gateway}"


def seen(bronze: DataFrame) -> list[LogOwner]:
    """Return the owners of events, in one pass; the result has a row for each gateway."""
    own = fn.nullif(fn.coalesce("incarnation", fn.lit("")), fn.lit(""))
    rows = bronze.groupBy("log", "gw").agg(
        fn.sort_array(fn.collect_set(own)).alias("incarnations"),
        fn.max(own.isNull()).alias("bare"),
    )
    return [
        LogOwner(row["log"], row["gw"], list(row["incarnations"]), row["bare"])
        for row in rows.toLocalIterator()
    ]


def joined(known: Iterable[LogOwner], new: Iterable[LogOwner]) -> list[LogOwner]:
    """Return what is known of all owners together; refuse events that may be of several stores."""
    owners: dict[tuple[str, str], LogOwner] = {}
    for owner in (*known, *new):
        before = owners.get((owner.log, owner.gateway), LogOwner(owner.log, owner.gateway))
        incarnations = sorted({*before.incarnations, *owner.incarnations})
        bare = before.bare or owner.bare
        if bare and len(incarnations) > 1:
            raise Conflict(
                f"the events of several stores are in one directory: {ASIDE}",
                log=owner.log or ".",
                gateway=owner.gateway,
                stores=", ".join(incarnations),
            )
        owners[owner.log, owner.gateway] = LogOwner(owner.log, owner.gateway, incarnations, bare)
    return [owners[key] for key in sorted(owners)]


def identified(bronze: DataFrame, owners: Sequence[LogOwner]) -> DataFrame:
    """Return events of bronze with their store. No shuffle: the owners are few, and go to every
    task."""
    rows = [(owner.log, owner.gateway, owner.store) for owner in owners]
    told = fn.broadcast(bronze.sparkSession.createDataFrame(rows, _TOLD))
    own = fn.nullif(fn.coalesce("incarnation", fn.lit("")), fn.lit(""))
    return (
        bronze.join(told, ["log", "gw"], "left")
        .withColumn("store", fn.coalesce(own, "told"))
        .drop("told")
    )
