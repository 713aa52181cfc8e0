"""Silver has the histories of deliveries, reads, contacts, heartbeats and ranks."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lasthop.clock import DAY, SECOND
from lasthop.events import Kind
from lasthop.pipeline import silver
from tests.pipeline.rows import NOON, TODAY, History, rows_of


def deliver(history: History, msg: int, t: int = NOON) -> None:
    """A message that is held, sent twice and read offline."""
    tell = history.tell
    tell(
        Kind.ACCEPTED,
        t,
        msg=msg,
        topic="news",
        source="publisher:p",
        size=100,
        rank=0.5,
        priority=5,
        before=t + DAY,
        reliability=3,
    )
    tell(Kind.HELD, t + 1, msg=msg, topic="news", reason="no contact", policy="v1")
    tell(Kind.RELEASED, t + 10, msg=msg, topic="news", reason="sent ahead of a read", policy="v2")
    tell(Kind.TRANSMITTED, t + 11, msg=msg, link="mno", network="op:a", bytes=108, cost=2.0, seq=4)
    tell(Kind.TRANSMITTED, t + 20, msg=msg, link="wifi", network="ssid:b", bytes=110, cost=0.0)
    tell(Kind.RECEIVED, t + 30, msg=msg, link="wifi")
    tell(Kind.RANK_CHANGED, t + 31, msg=msg, topic="news", rank=0.25)
    tell(Kind.DELIVERED, t + 40, msg=msg, link="wifi", epoch=1, seq=4)
    tell(Kind.READ, t + 100, msg=msg, topic="news", at=t + 70)


def test_a_delivery_is_one_row_with_its_whole_timeline(spark: SparkSession) -> None:
    history = History()
    deliver(history, 7)
    (row,) = silver.deliveries(history.frame(spark)).collect()
    assert row.asDict() == {
        "app": "app",
        "dev": "phone",
        "msg": 7,
        "store": "gw",
        "gw": "gw",
        "topic": "news",
        "queue": "",
        "source": "publisher:p",
        "target": "",
        "size": 100,
        "rank": 0.5,
        "last_rank": 0.25,
        "priority": 5,
        "after": 0,
        "before": NOON + DAY,
        "reliability": 3,
        "accepted_at": NOON,
        "held_at": NOON + 1,
        "hold_reason": "no contact",
        "released_at": NOON + 10,
        "released_n": 2,
        "release_reason": "sent ahead of a read",
        "policy": "v2",
        "transmitted_at": NOON + 11,
        "transmissions": 2,
        "bytes": 218,
        "cost": 2.0,
        "received_at": NOON + 30,
        "requeues": 0,
        "ended_at": NOON + 40,
        "outcome": "delivered",
        "end_reason": "",
        "delivered_at": NOON + 40,
        "delivered_n": 7,
        "copies": 1,
        "read_at": NOON + 70,
        "read_offline": True,
        "retracted_at": None,
        "link": "wifi",
        "network": "",
        "epoch": 1,
        "seq": 4,
        "events": 9,
        "date": TODAY,
    }


def test_an_open_delivery_has_no_outcome_and_one_without_beginning_waits(
    spark: SparkSession,
) -> None:
    history = History()
    history.tell(Kind.ACCEPTED, msg=1, size=5, reason="no contact")
    history.tell(Kind.DELIVERED, msg=2)
    (row,) = silver.deliveries(history.frame(spark)).collect()
    assert (row["msg"], row["outcome"], row["ended_at"], row["bytes"]) == (1, "", None, 0)


def test_copies_of_events_change_nothing(spark: SparkSession) -> None:
    history = History()
    deliver(history, 7)
    once = history.frame(spark)
    twice = once.unionByName(once.limit(5)).repartition(3)
    clean = rows_of(silver.events(once))
    assert rows_of(silver.events(twice)) == clean
    assert rows_of(silver.events(twice, copied=[TODAY])) == clean
    assert rows_of(silver.events(once, copied=[])) == clean


def test_the_same_offset_of_another_boot_is_another_event(spark: SparkSession) -> None:
    history = History()
    first = history.tell(Kind.REGISTERED)
    first.boot = 2
    again = History()
    again.tell(Kind.REGISTERED)
    both = history.frame(spark).unionByName(again.frame(spark))
    assert silver.events(both).count() == 2


def test_reads_say_when_the_user_looked(spark: SparkSession) -> None:
    history = History()
    history.tell(Kind.READ, topic="news", count=8, queue_size=3, keys=(5, 6, 7))
    history.tell(Kind.READ, NOON + 50, topic="news", count=-1, at=NOON + 20, keys=(8,))
    history.tell(Kind.READ, topic="news", msg=5, reason="asked for by a read")
    rows = silver.reads(history.frame(spark)).orderBy("n").collect()
    assert [
        (r["read_at"], r["heard_at"], r["offline"], r["wanted"], r["queue_size"]) for r in rows
    ] == [(NOON, NOON, False, 8, 3), (NOON + 20, NOON + 50, True, -1, -1)]


def test_contacts_end_with_their_channel_or_with_their_gateway(spark: SparkSession) -> None:
    history = History()
    tell = history.tell
    tell(Kind.CONTACT_STARTED, NOON, channel=1, link="wifi", network="ssid:a")
    tell(Kind.CONTACT_STARTED, NOON + 5, channel=2, link="mno", network="op:b", resumed=True)
    tell(Kind.CONTACT_LOST, NOON + 9, channel=1, link="wifi", reason="the link broke")
    restarted = tell(Kind.GATEWAY_STARTED, NOON + DAY, app="", dev="", count=2)
    later = tell(Kind.CONTACT_STARTED, NOON + DAY + 5, channel=1, link="wifi", network="ssid:a")
    restarted.boot = later.boot = 2
    rows = silver.contacts(history.frame(spark)).orderBy("started_at").collect()
    assert [
        (r["boot"], r["channel"], r["link"], r["started_at"], r["ended_at"], r["reason"])
        for r in rows
    ] == [
        (1, 1, "wifi", NOON, NOON + 9, "the link broke"),
        (1, 2, "mno", NOON + 5, NOON + DAY, "the gateway restarted"),
        (2, 1, "wifi", NOON + DAY + 5, None, None),
    ]
    assert [r["resumed"] for r in rows] == [False, True, False]


def test_heartbeats_and_ranks_are_rows_of_their_own(spark: SparkSession) -> None:
    history = History()
    tell = history.tell
    tell(Kind.HEARTBEAT, link="mno", network="op:a", interval=60 * SECOND, reason="answered", rtt=9)
    tell(Kind.HEARTBEAT, link="mno", network="op:a", interval=90 * SECOND, reason="missed")
    tell(Kind.RANK_CHANGED, topic="news", msg=3, rank=-1.0)
    events = history.frame(spark)
    beats = silver.heartbeats(events).orderBy("interval").collect()
    assert [(b["interval"], b["answered"], b["rtt"]) for b in beats] == [
        (60 * SECOND, True, 9),
        (90 * SECOND, False, -1),
    ]
    (change,) = silver.rank_changes(events).collect()
    assert (change["msg"], change["rank"], change["t"]) == (3, -1.0, NOON)


def test_what_a_feed_says_is_no_message_of_its_topic(spark: SparkSession) -> None:
    history = History()
    history.tell(Kind.ACCEPTED, msg=1, topic="news", source="gateway:", reason="what the feed says")
    history.tell(Kind.ACCEPTED, msg=2, topic="news", source="publisher:p", reason="in contact")
    rows = silver.deliveries(history.frame(spark)).orderBy("msg").collect()
    assert [row["topic"] for row in rows] == ["", "news"]
