"""Odin's measures, on deliveries that were counted by hand."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from lasthop.pipeline.gold.quality import DELIVERY_QUALITY, delivery_quality
from lasthop.pipeline.silver import DELIVERIES
from tests.pipeline.rows import NOON, TODAY, frame, keeps_to


def delivery(msg: int, outcome: str = "delivered", **facts: Any) -> dict[str, Any]:
    row = {
        "app": "app",
        "dev": "phone",
        "msg": msg,
        "source": "publisher:p",
        "queue": "",
        "priority": 5,
        "link": "wifi",
        "accepted_at": NOON,
        "after": 0,
        "size": 80,
        "outcome": outcome,
        "transmissions": 1,
        "bytes": 100,
        "cost": 1.0,
        "copies": 1 if outcome == "delivered" else 0,
        "date": TODAY,
    }
    if outcome == "delivered":
        row |= {"delivered_at": NOON + 10 * msg, "delivered_n": 100 + msg, "released_n": msg}
    return row | facts


def measured(spark: SparkSession, *rows: dict[str, Any]) -> dict[str, Any]:
    table = delivery_quality(frame(spark, DELIVERIES, rows))
    keeps_to(table, DELIVERY_QUALITY)
    (row,) = table.collect()
    return dict(row.asDict())


def test_loss_counts_what_nobody_took_back(spark: SparkSession) -> None:
    row = measured(
        spark,
        delivery(1),
        delivery(2),
        delivery(3, "sent"),
        delivery(4, "expired"),
        delivery(5, "timed_out"),
        delivery(6, "cancelled"),
        delivery(7, "suppressed"),
        delivery(8, ""),
    )
    assert row["accepted"] == 8
    assert (row["delivered"], row["sent"], row["expired"], row["open"]) == (2, 1, 1, 1)
    assert row["loss"] == pytest.approx(2 / 5)
    assert (row["hour"], row["link"], row["date"]) == (12, "wifi", TODAY)


def test_latency_begins_when_the_message_may_be_sent(spark: SparkSession) -> None:
    late = delivery(5, after=NOON + 30)
    row = measured(spark, delivery(1), delivery(2), delivery(3), delivery(4), late)
    # 10, 20, 30, 40 and 50 - 30
    assert (row["latency_p50"], row["latency_p99"]) == (20, 40)


def test_order_is_judged_within_a_lane(spark: SparkSession) -> None:
    row = measured(
        spark,
        delivery(1, released_n=10, delivered_n=101),
        delivery(2, released_n=30, delivered_n=102),
        delivery(3, released_n=20, delivered_n=103),
        delivery(4, released_n=25, delivered_n=104),
        delivery(5, released_n=1, delivered_n=105, priority=9),
        delivery(6, released_n=2, delivered_n=106, dev="tablet"),
        delivery(7, "expired", released_n=1),
    )
    assert row["order_violations"] == 2
    assert row["duplicates"] == 0


def test_nobody_promised_an_order_for_ranked_topics(spark: SparkSession) -> None:
    row = measured(
        spark,
        delivery(1, released_n=10, delivered_n=101),
        delivery(2, released_n=30, delivered_n=102, topic="news"),
        delivery(3, released_n=20, delivered_n=103),
        delivery(4, released_n=15, delivered_n=104, topic="news"),
        delivery(5, released_n=12, delivered_n=105),
    )
    # Only the last one of the plain ones was overtaken.
    assert row["order_violations"] == 1


def test_gateways_share_no_lane(spark: SparkSession) -> None:
    row = measured(
        spark,
        delivery(1, released_n=30, delivered_n=101, store="one"),
        delivery(2, released_n=20, delivered_n=102, store="other"),
    )
    assert row["order_violations"] == 0


def test_duplicates_and_bytes(spark: SparkSession) -> None:
    row = measured(
        spark,
        delivery(1, copies=3, transmissions=3, bytes=300),
        delivery(2),
        delivery(3, "expired", bytes=50),
    )
    assert (row["duplicates"], row["transmissions"], row["bytes"]) == (2, 5, 450)
    assert row["bytes_per_delivered"] == 225
    assert row["overhead"] == pytest.approx((450 - 160) / 450)
    assert row["cost"] == 3.0
