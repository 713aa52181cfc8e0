"""Silver: each event once, and the tables made from them: deliveries, reads, contacts, heartbeats,
ranks.

An event's date follows from its time, so that all copies of it are in the same day of bronze. A day
of silver is therefore made from a day of bronze and nothing else, however often, in whatever order
and how late its events came in: there is no watermark to miss, only a day to make again. What
begins on one day and ends on another (a delivery, a contact) belongs to the day on which it began.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from pyspark.sql import Column, DataFrame, functions as fn
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from lasthop.events import Kind
from lasthop.message import GATEWAY
from lasthop.pipeline.ids import ID
from lasthop.pipeline.schema import ENDS, LIFE, STORED_EVENT, conform, day_of, filled

TEXT, NUMBER, REAL, FLAG, DAY = StringType(), LongType(), DoubleType(), BooleanType(), DateType()


def table(**columns: StringType | LongType | DoubleType | BooleanType | DateType) -> StructType:
    """Return a schema with these columns."""
    return StructType([StructField(name, kind) for name, kind in columns.items()])


EVENTS = STORED_EVENT

DELIVERIES = table(
    store=TEXT,
    app=TEXT,
    dev=TEXT,
    msg=NUMBER,
    gw=TEXT,
    topic=TEXT,
    queue=TEXT,
    source=TEXT,
    target=TEXT,
    size=NUMBER,
    rank=REAL,
    last_rank=REAL,
    priority=NUMBER,
    after=NUMBER,
    before=NUMBER,
    reliability=NUMBER,
    accepted_at=NUMBER,
    held_at=NUMBER,
    hold_reason=TEXT,
    released_at=NUMBER,
    released_n=NUMBER,
    release_reason=TEXT,
    policy=TEXT,
    transmitted_at=NUMBER,
    transmissions=NUMBER,
    bytes=NUMBER,
    cost=REAL,
    received_at=NUMBER,
    requeues=NUMBER,
    ended_at=NUMBER,
    outcome=TEXT,
    end_reason=TEXT,
    delivered_at=NUMBER,
    delivered_n=NUMBER,
    copies=NUMBER,
    read_at=NUMBER,
    read_offline=FLAG,
    retracted_at=NUMBER,
    link=TEXT,
    network=TEXT,
    epoch=NUMBER,
    seq=NUMBER,
    events=NUMBER,
    date=DAY,
)
"""One message for one device: its timeline in microseconds of UTC, its outcome and its costs.
`copies` counts how often it was delivered; `outcome` is empty while the delivery is open."""

READS = table(
    store=TEXT,
    app=TEXT,
    dev=TEXT,
    topic=TEXT,
    read_at=NUMBER,
    heard_at=NUMBER,
    offline=FLAG,
    wanted=NUMBER,
    queue_size=NUMBER,
    n=NUMBER,
    date=DAY,
)
"""Looks of users at a topic, for the best `wanted` messages (-1: as many as Max allows)."""

CONTACTS = table(
    store=TEXT,
    app=TEXT,
    dev=TEXT,
    gw=TEXT,
    boot=NUMBER,
    channel=NUMBER,
    link=TEXT,
    network=TEXT,
    resumed=FLAG,
    started_at=NUMBER,
    ended_at=NUMBER,
    reason=TEXT,
    date=DAY,
)
"""Contacts of devices, each over one channel; `ended_at` is empty while the contact lasts."""

HEARTBEATS = table(
    store=TEXT,
    app=TEXT,
    dev=TEXT,
    link=TEXT,
    network=TEXT,
    channel=NUMBER,
    t=NUMBER,
    interval=NUMBER,
    answered=FLAG,
    rtt=NUMBER,
    date=DAY,
)
"""Heartbeats after `interval` without traffic, and whether each was answered."""

RANK_CHANGES = table(
    store=TEXT,
    app=TEXT,
    dev=TEXT,
    topic=TEXT,
    msg=NUMBER,
    t=NUMBER,
    rank=REAL,
    n=NUMBER,
    date=DAY,
)
"""Changes of the rank that a message has for a device's feed."""

MISSED = "missed"
"""The `reason` of a heartbeat that was not answered."""


DELIVERY = ("store", "app", "dev", "msg")
"""The columns that identify a delivery: two gateways may give the same name to different devices,
and the same key to different messages."""


def events(bronze: DataFrame, *, copied: Collection[date] | None = None) -> DataFrame:
    """Return each event of bronze, whose store is known, once, with its defaults filled in.

    This takes one shuffle of whole events by their ids, but only for the `copied` days (all, if
    they are not known): copies may come in any batch, and usually there are none.
    """
    if copied is None:
        return conform(filled(bronze.dropDuplicates(list(ID))), EVENTS)
    again = fn.col("date").isin(*copied) if copied else fn.lit(False)
    once = bronze.where(again).dropDuplicates(list(ID)).unionByName(bronze.where(~again))
    return conform(filled(once if copied else bronze), EVENTS)


def about_a_delivery() -> Column:
    """Return the condition that an event belongs to a delivery."""
    kinds = (*LIFE, Kind.READ, Kind.RETRACTED, Kind.RANK_CHANGED)
    return fn.col("kind").isin(*kinds) & (fn.col("msg") != 0)


def deliveries(events: DataFrame) -> DataFrame:
    """Return one row for every delivery whose `accepted` is among the events.

    This takes one shuffle by delivery, sorted by it: texts do not fit into Spark's hash tables. The
    number comes first, since it alone nearly always decides a comparison. Events of a delivery
    without its beginning wait in the events until the beginning arrives.
    """
    kind = fn.col("kind")

    def when(of: Kind, what: str | Column) -> Column:
        return fn.when(kind == of, fn.col(what) if isinstance(what, str) else what)

    def of_first(of: Kind, what: str) -> Column:
        return fn.min_by(fn.col(what), when(of, "n"))

    ended = kind.isin(*ENDS)
    seen_at = fn.when(fn.col("at") > 0, fn.col("at")).otherwise(fn.col("t"))
    on_link = kind.isin(Kind.TRANSMITTED, Kind.DELIVERED, Kind.SENT) & (fn.col("link") != "")
    rows = (
        events.where(about_a_delivery())
        .groupBy("msg", "dev", "app", "store")
        .agg(
            fn.min(when(Kind.ACCEPTED, "t")).alias("accepted_at"),
            *(
                of_first(Kind.ACCEPTED, name).alias(name)
                for name in (
                    "gw",
                    "topic",
                    "queue",
                    "source",
                    "target",
                    "size",
                    "rank",
                    "priority",
                    "after",
                    "before",
                    "reliability",
                )
            ),
            fn.max_by("rank", when(Kind.RANK_CHANGED, "n")).alias("changed_rank"),
            fn.min(when(Kind.HELD, "t")).alias("held_at"),
            of_first(Kind.HELD, "reason").alias("hold_reason"),
            fn.min(when(Kind.RELEASED, "t")).alias("released_at"),
            fn.min(when(Kind.RELEASED, "n")).alias("released_n"),
            of_first(Kind.RELEASED, "reason").alias("release_reason"),
            fn.max_by("policy", fn.when(fn.col("policy") != "", fn.col("n"))).alias("policy"),
            fn.min(when(Kind.TRANSMITTED, "t")).alias("transmitted_at"),
            fn.count(when(Kind.TRANSMITTED, "n")).alias("transmissions"),
            fn.sum(when(Kind.TRANSMITTED, "bytes")).alias("bytes"),
            fn.sum(when(Kind.TRANSMITTED, "cost")).alias("cost"),
            fn.min(when(Kind.RECEIVED, "t")).alias("received_at"),
            fn.count(when(Kind.REQUEUED, "n")).alias("requeues"),
            fn.min(fn.when(ended, fn.col("t"))).alias("ended_at"),
            fn.min_by("kind", fn.when(ended, fn.col("n"))).alias("outcome"),
            fn.min_by("reason", fn.when(ended, fn.col("n"))).alias("end_reason"),
            fn.min(when(Kind.DELIVERED, "t")).alias("delivered_at"),
            fn.min(when(Kind.DELIVERED, "n")).alias("delivered_n"),
            fn.count(when(Kind.DELIVERED, "n")).alias("copies"),
            fn.min(when(Kind.READ, seen_at)).alias("read_at"),
            fn.max(when(Kind.READ, fn.col("at") > 0)).alias("read_offline"),
            fn.min(when(Kind.RETRACTED, "t")).alias("retracted_at"),
            fn.max_by("link", fn.when(on_link, fn.col("n"))).alias("link"),
            fn.max_by("network", fn.when(on_link, fn.col("n"))).alias("network"),
            fn.max("epoch").alias("epoch"),
            fn.max("seq").alias("seq"),
            fn.count("*").alias("events"),
        )
        .where(fn.col("accepted_at").isNotNull())
        .withColumn("last_rank", fn.coalesce("changed_rank", "rank"))
        # A feed's instructions to a device travel as messages, but do not belong to its topic.
        .withColumn("topic", fn.when(fn.col("source") == GATEWAY, "").otherwise(fn.col("topic")))
        .withColumn("date", day_of(fn.col("accepted_at")))
        .fillna({"bytes": 0, "cost": 0.0, "outcome": "", "link": "", "network": "", "policy": ""})
    )
    return conform(rows, DELIVERIES)


def reads(events: DataFrame) -> DataFrame:
    """Return every look of a user at a topic; which messages were seen is in `deliveries`."""
    looked = events.where((fn.col("kind") == Kind.READ) & (fn.col("msg") == 0))
    offline = fn.col("at") > 0
    rows = (
        looked.withColumn("read_at", fn.when(offline, fn.col("at")).otherwise(fn.col("t")))
        .withColumn("offline", offline)
        .withColumnsRenamed({"t": "heard_at", "count": "wanted"})
    )
    return conform(rows, READS)


def contacts(events: DataFrame) -> DataFrame:
    """Return when each device was in contact, and over which link.

    A channel that was open when its gateway died ends where the next start of that store begins.
    This takes one shuffle by channel; the starts of gateways are few and go to every task.
    """
    kind = fn.col("kind")
    started, lost = kind == Kind.CONTACT_STARTED, kind == Kind.CONTACT_LOST
    starts = (
        events.where(kind == Kind.GATEWAY_STARTED)
        .groupBy("store")
        .agg(fn.sort_array(fn.collect_list(fn.struct("boot", "t"))).alias("starts"))
    )
    later = fn.filter("starts", lambda start: start["boot"] > fn.col("boot"))
    rows = (
        events.where(started | lost)
        .groupBy("app", "dev", "store", "boot", "channel")
        .agg(
            fn.min("gw").alias("gw"),
            fn.min(fn.when(started, fn.col("t"))).alias("started_at"),
            fn.max(fn.when(lost, fn.col("t"))).alias("lost_at"),
            fn.max_by("link", fn.when(started, fn.col("n"))).alias("link"),
            fn.max_by("network", fn.when(started, fn.col("n"))).alias("network"),
            fn.max(fn.when(started, fn.col("resumed"))).alias("resumed"),
            fn.max_by("reason", fn.when(lost, fn.col("n"))).alias("reason"),
        )
        .where(fn.col("started_at").isNotNull())
        .join(fn.broadcast(starts), "store", "left")
        .withColumn("restarted_at", fn.get(later, fn.lit(0))["t"])
        .withColumn("ended_at", fn.coalesce("lost_at", "restarted_at"))
        .withColumn(
            "reason",
            fn.coalesce(
                "reason", fn.when(fn.col("restarted_at").isNotNull(), "the gateway restarted")
            ),
        )
        .withColumn("date", day_of(fn.col("started_at")))
    )
    return conform(rows, CONTACTS)


def heartbeats(events: DataFrame) -> DataFrame:
    """Return every heartbeat, and whether it was answered."""
    rows = events.where(fn.col("kind") == Kind.HEARTBEAT).withColumn(
        "answered", fn.col("reason") != MISSED
    )
    return conform(rows, HEARTBEATS)


def rank_changes(events: DataFrame) -> DataFrame:
    """Return every change of a message's rank."""
    return conform(events.where(fn.col("kind") == Kind.RANK_CHANGED), RANK_CHANGES)
