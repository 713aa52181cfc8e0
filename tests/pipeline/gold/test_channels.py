"""Links, networks, what was spent, and what radios did, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from lasthop.clock import DAY, SECOND
from lasthop.events import Kind
from lasthop.pipeline import silver
from lasthop.pipeline.gold.channels import CHANNELS, channels
from lasthop.pipeline.gold.energy import BASE, BATTERY, ENERGY, RADIOS, energy
from lasthop.pipeline.gold.usage import LIMITS, USAGE, limits, usage
from tests.pipeline.rows import NOON, TODAY, History, keeps_to

ON: dict[str, Any] = {"link": "mno", "network": "op:a"}


def test_a_network_s_day(spark: SparkSession) -> None:
    history = History()
    tell = history.tell
    tell(Kind.MEASURED, **ON, rtt=100, bytes=1000, contention=1.0)
    tell(Kind.MEASURED, **ON, rtt=300, bytes=3000, contention=2.0, dev="tablet")
    tell(Kind.HEARTBEAT, **ON, rtt=200, interval=60 * SECOND, reason="answered")
    tell(Kind.HEARTBEAT, **ON, interval=90 * SECOND, reason="missed")
    tell(Kind.TRANSMITTED, **ON, msg=1, bytes=500, cost=2.5)
    tell(Kind.MEASURED, NOON + DAY, **ON, rtt=7, bytes=1, contention=1.0)
    tell(Kind.DELIVERED, **ON, msg=1)
    table = channels(history.frame(spark))
    keeps_to(table, CHANNELS)
    row = table.where(table["date"] == TODAY).collect()[0]
    assert (row["devices"], row["samples"], row["transmissions"]) == (2, 2, 1)
    assert (row["rtt_p50"], row["rtt_p95"], row["throughput_p50"]) == (200, 300, 1000)
    assert (row["contention"], row["contended"]) == (1.5, 0.5)
    assert (row["bytes"], row["cost"]) == (500, 2.5)


def test_usage_counts_every_transmission_on_its_day_against_the_newest_limits(
    spark: SparkSession,
) -> None:
    history = History()
    tell = history.tell
    old = '{"limits":[{"amount":1,"measure":"bytes","period":"day"}]}'
    new = (
        '{"limits":[{"amount":250,"measure":"bytes","period":"day","link":"mno"},'
        '{"amount":3,"measure":"messages","period":"week"},'
        '{"amount":9,"measure":"money","period":"month","queues":["bulk"]}]}'
    )
    tell(Kind.PREFERENCES_CHANGED, terms=old)
    tell(Kind.PREFERENCES_CHANGED, terms=new)
    tell(Kind.ACCEPTED, msg=1, queue="bulk")
    tell(Kind.ACCEPTED, msg=2)
    tell(Kind.TRANSMITTED, msg=1, link="mno", bytes=100, cost=1.0)
    tell(Kind.TRANSMITTED, NOON + 5, msg=1, link="mno", bytes=200, cost=2.0)
    tell(Kind.TRANSMITTED, NOON + 6, msg=2, link="wifi", bytes=50)
    tell(Kind.TRANSMITTED, NOON + DAY, msg=2, link="mno", bytes=10, cost=4.0)
    events = history.frame(spark)
    spent = usage(events, silver.deliveries(events))
    keeps_to(spent, USAGE)
    rows = sorted(
        (str(r["date"]), r["link"], r["queue"], r["messages"], r["bytes"], r["money"])
        for r in spent.collect()
    )
    assert rows == [
        ("2026-09-04", "mno", "bulk", 2, 300, 3.0),
        ("2026-09-04", "wifi", "", 1, 50, 0.0),
        ("2026-09-05", "mno", "", 1, 10, 4.0),
    ]
    table = limits(spent, events)
    keeps_to(table, LIMITS)
    found = sorted(
        (r["period"], str(r["begins"]), r["measure"], r["link"], r["queues"], r["used"])
        for r in table.collect()
    )
    assert found == [
        ("day", "2026-09-04", "bytes", "mno", "", 300),
        ("day", "2026-09-05", "bytes", "mno", "", 10),
        ("month", "2026-09-01", "money", "", "bulk", 3.0),
        ("week", "2026-08-31", "messages", "", "", 4),
    ]
    over = {(r["period"], r["used"]): (r["share"], r["exceeded"]) for r in table.collect()}
    assert over[("day", 300)] == (1.2, True)
    assert over[("month", 3.0)] == (pytest.approx(1 / 3), False)


def test_uses_within_a_tail_share_it(spark: SparkSession) -> None:
    history = History()
    for second in (0, 5, 100):
        history.tell(Kind.TRANSMITTED, NOON + second * SECOND, msg=1, **ON, bytes=1)
    history.tell(Kind.TRANSMITTED, NOON, msg=2, dev="tablet", link="wifi", bytes=1)
    table = energy(history.frame(spark))
    keeps_to(table, ENERGY)
    rows = {r["dev"]: r for r in table.collect()}
    phone, tablet = rows["phone"], rows["tablet"]
    mno, wifi = RADIOS["mno"], RADIOS["wifi"]
    # 5 seconds until the second use, then two whole tails.
    assert (phone["transfers"], phone["awake"]) == (3, 5 * SECOND + 2 * mno.tail)
    share = phone["awake"] / DAY
    power = BASE + mno.asleep + (mno.awake - mno.asleep) * share
    assert phone["milliwatts"] == pytest.approx(power)
    assert phone["operational_hours"] == pytest.approx(BATTERY / power)
    assert phone["idle_hours"] == pytest.approx(BATTERY / (BASE + mno.asleep))
    # Odin's index, from its definition.
    t_op = [phone["operational_hours"], tablet["operational_hours"]]
    t_idle = [phone["idle_hours"], tablet["idle_hours"]]
    index = [(op / max(t_op)) / (idle / max(t_idle)) for op, idle in zip(t_op, t_idle, strict=True)]
    assert phone["efficiency"] == pytest.approx(index[0] / max(index))
    assert tablet["efficiency"] == pytest.approx(index[1] / max(index))
    assert wifi.tail < mno.tail
