"""Waste and loss of one reader, by hand: what was forwarded, read, and would have been read."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lasthop.clock import HOUR
from lasthop.events import Kind
from lasthop.pipeline import silver
from lasthop.pipeline.gold.last_hop import agreement, feeds, last_hop, read_on_line, replayed
from tests.pipeline.rows import NOON, History

TERMS = '{"subscription":{"max":2},"policy":"on-demand","tuning":{"max":2}}'


def the_story() -> History:
    """On demand: three arrive in contact and stay at the gateway; contact ends; a look shows
    nothing; contact again; a look shows the best two of four, one of which has expired by then."""
    history = History()
    tell = history.tell
    tell(Kind.SUBSCRIBED, NOON, topic="news", terms=TERMS)
    tell(Kind.CONTACT_STARTED, NOON, channel=1, link="wifi")
    tell(Kind.REPORTED, NOON, topic="news", count=0)
    for msg, rank, before in ((1, 0.9, NOON + 3 * HOUR), (2, 0.5, 0), (3, 0.1, 0)):
        tell(Kind.ACCEPTED, NOON + msg, msg=msg, topic="news", rank=rank, before=before)
        tell(Kind.HELD, NOON + msg, msg=msg, topic="news", reason="kept for a read")
    tell(Kind.CONTACT_LOST, NOON + HOUR, channel=1, link="wifi")
    tell(Kind.ACCEPTED, NOON + 2 * HOUR, msg=4, topic="news", rank=0.7)
    # The user looks out of contact, and finds nothing.
    tell(Kind.CONTACT_STARTED, NOON + 4 * HOUR, channel=2, link="wifi")
    tell(Kind.READ, NOON + 4 * HOUR, topic="news", count=2, at=NOON + 2 * HOUR)
    tell(Kind.REPORTED, NOON + 4 * HOUR, topic="news", count=1)
    tell(Kind.EXPIRED, NOON + 4 * HOUR, msg=1, topic="news", reason="expired")
    # And then in contact.
    tell(Kind.READ, NOON + 5 * HOUR, topic="news", count=2, queue_size=0)
    for msg in (4, 2):
        tell(Kind.RELEASED, NOON + 5 * HOUR, msg=msg, topic="news", reason="asked for by a read")
        tell(Kind.READ, NOON + 5 * HOUR, msg=msg, topic="news", reason="asked for by a read")
    # Something that is pushed outright is not judged.
    tell(Kind.ACCEPTED, NOON, msg=9, topic="alarm")
    return history


def test_loss_is_what_the_on_line_reader_has_read_and_this_one_has_not(
    spark: SparkSession,
) -> None:
    events = the_story().frame(spark)
    on_line = read_on_line(replayed(events))
    # On-line, 1, 2 and 3 are on the device at once: the look without contact shows 1 and 2, the
    # one with contact 4 and 3.
    assert sorted(row["msg"] for row in on_line.collect()) == [1, 2, 3, 4]
    table = last_hop(silver.deliveries(events), on_line, feeds(events))
    (row,) = table.collect()
    assert (row["arrived"], row["forwarded"], row["read"], row["wasted"]) == (4, 2, 2, 0)
    assert (row["read_online"], row["lost"]) == (4, 2)
    assert (row["waste"], row["loss"]) == (0.0, 0.5)


def test_waste_is_what_was_forwarded_and_never_read(spark: SparkSession) -> None:
    history = the_story()
    history.tell(Kind.RELEASED, NOON + 6 * HOUR, msg=3, topic="news", reason="sent ahead of a read")
    events = history.frame(spark)
    (row,) = last_hop(
        silver.deliveries(events), read_on_line(replayed(events)), feeds(events)
    ).collect()
    assert (row["forwarded"], row["wasted"]) == (3, 1)
    assert row["waste"] == 1 / 3


def test_a_device_of_two_gateways_is_replayed_for_each_alone(spark: SparkSession) -> None:
    history, other = the_story(), the_story()
    for event in other.events:
        event.gw = "other"
    both = history.frame(spark).unionByName(other.frame(spark)).repartition(3)
    found = replayed(both)
    on_line = read_on_line(found)
    assert sorted((row["store"], row["msg"]) for row in on_line.collect()) == [
        (store, msg) for store in ("gw", "other") for msg in (1, 2, 3, 4)
    ]
    (row,) = last_hop(silver.deliveries(both), on_line, feeds(both)).collect()
    assert (row["arrived"], row["forwarded"], row["read_online"], row["lost"]) == (8, 4, 8, 4)
    rows = sorted(agreement(found).collect())
    assert [
        (r["store"], r["messages"], r["agreed"], r["share"], r["difference"]) for r in rows
    ] == [
        ("gw", 4, 4, 1.0, ""),
        ("other", 4, 4, 1.0, ""),
    ]
