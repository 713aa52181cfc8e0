"""Waste and loss on the last hop, as the last-hop paper defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lasthop.events import Kind
from lasthop.pipeline.replay import (
    COLUMNS,
    KINDS,
    ON_LINE,
    ReplayRow,
    audit,
    decider,
    estimate,
    moments,
)
from lasthop.pipeline.schema import conform, ratio
from lasthop.pipeline.silver import DAY, DELIVERY, NUMBER, REAL, TEXT, table

REPLAYED = table(
    store=TEXT, app=TEXT, dev=TEXT, msg=NUMBER, messages=NUMBER, agreed=NUMBER, difference=TEXT
)
"""What a replay of a device says: a row for each message `msg` that its user would have read under
the on-line policy; and one row with `msg` 0 that has its audit."""

AGREEMENT = table(
    store=TEXT,
    app=TEXT,
    dev=TEXT,
    messages=NUMBER,
    agreed=NUMBER,
    share=REAL,
    difference=TEXT,
)
"""For each device with ranked topics, how many of its messages the model of the live policies
treats as the log does; `difference` names the first other one."""

LAST_HOP = table(
    app=TEXT,
    dev=TEXT,
    topic=TEXT,
    arrived=NUMBER,
    forwarded=NUMBER,
    read=NUMBER,
    wasted=NUMBER,
    read_online=NUMBER,
    lost=NUMBER,
    waste=REAL,
    loss=REAL,
    date=DAY,
)


def by_device(
    events: DataFrame,
    work: Callable[[str, str, list[ReplayRow]], dict[str, list[Any]]],
    schema: StructType,
) -> DataFrame:
    """Give the events that every device has in one store, in their order, to `work`, in Arrow
    batches. Numbers of different stores have no order, so a device that has been with two gateways
    is replayed twice.

    This takes one shuffle by device; a device's events of the log fit into the memory of a task.
    """
    arrow = to_arrow_schema(schema)
    needed = events.where(fn.col("kind").isin(*KINDS) & (fn.col("dev") != "")).select(
        "store", "app", "dev", *COLUMNS
    )

    def replayed(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        store, app, dev = (part.as_py() for part in key)
        columns = [table.column(name).to_pylist() for name in COLUMNS]
        rows = sorted(map(ReplayRow, *columns))
        found = work(app, dev, rows)
        length = len(next(iter(found.values())))
        # The types are named, since a device may have no rows.
        keys = {"store": [store] * length, "app": [app] * length, "dev": [dev] * length}
        return pa.table({**keys, **found}, schema=arrow)

    return needed.groupBy("store", "app", "dev").applyInArrow(replayed, schema)


def replayed(events: DataFrame) -> DataFrame:
    """Replay every device under the on-line policy, and under its own for the audit; one shuffle by
    device for both."""

    def work(app: str, dev: str, rows: list[ReplayRow]) -> dict[str, list[Any]]:
        histories = estimate(
            moments(rows), lambda _, terms: decider(ON_LINE, terms.as_subscription())
        )
        keys = [0, *(key for history in histories.values() for key in history.read)]
        rest = [None] * (len(keys) - 1)
        found = audit(rows)
        columns = {name: [value, *rest] for name, value in found._asdict().items()}
        return {"msg": keys, **columns}

    return by_device(events, work, REPLAYED)


def read_on_line(replayed: DataFrame) -> DataFrame:
    """Return what the users would have read if everything had been forwarded as soon as there was
    contact: the same arrivals, contacts and looks, through the same feeds and device queue."""
    return replayed.where(fn.col("msg") != 0).select(*DELIVERY)


def agreement(replayed: DataFrame) -> DataFrame:
    """Return for each device with ranked topics how well the model of its live policies agrees with
    its log: an estimate is worth as much as this figure."""
    rows = replayed.where((fn.col("msg") == 0) & (fn.col("messages") > 0))
    share = ratio(fn.col("agreed"), fn.col("messages"))
    return conform(rows.withColumn("share", share), AGREEMENT)


def feeds(events: DataFrame) -> DataFrame:
    """Return the topics whose volume is limited: those that were subscribed to with terms."""
    limited = (fn.col("kind") == Kind.SUBSCRIBED) & (fn.col("terms") != "")
    return events.where(limited).select("store", "app", "dev", "topic").distinct()


def last_hop(deliveries: DataFrame, read_on_line: DataFrame, feeds: DataFrame) -> DataFrame:
    """Measure for every device, topic and day of arrival:

    - **waste** = forwarded and never read / forwarded;
    - **loss** = read under the on-line policy and not under the live one / read under the on-line
      policy, both on the same arrivals, contacts and looks.

    The log ends where it ends, without grace: what lies unread on a device then counts as wasted,
    and what only the on-line policy's user has read by then counts as lost; a later run over a
    longer log moves both. Only topics with a limited volume count: what is pushed outright has no
    choice to judge.

    One shuffle by delivery to join what would have been read.
    """
    would = read_on_line.withColumn("would", fn.lit(1))
    sent, seen = fn.col("released_at").isNotNull(), fn.col("read_at").isNotNull()
    rows = (
        deliveries.join(feeds, ["store", "app", "dev", "topic"], "left_semi")
        .join(would, [*DELIVERY], "left")
        .groupBy("date", "app", "dev", "topic")
        .agg(
            fn.count("*").alias("arrived"),
            fn.count(fn.when(sent, 1)).alias("forwarded"),
            fn.count(fn.when(seen, 1)).alias("read"),
            fn.count(fn.when(sent & ~seen, 1)).alias("wasted"),
            fn.count("would").alias("read_online"),
            fn.count(fn.when(~seen, fn.col("would"))).alias("lost"),
        )
        .withColumn("waste", ratio(fn.col("wasted"), fn.col("forwarded")))
        .withColumn("loss", ratio(fn.col("lost"), fn.col("read_online")))
    )
    return conform(rows, LAST_HOP)
