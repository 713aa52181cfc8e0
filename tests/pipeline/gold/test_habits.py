"""What is learned of people and networks: calendars, read profiles, idle connections; by hand.

About `pipeline/gold/calendar.py`, `pipeline/gold/heartbeat.py` and `pipeline/gold/reading.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from lasthop.clock import DAY, HOUR, MINUTE, SECOND
from lasthop.core.preferences.encoding import encode_preferences
from lasthop.decision.link_calendar import LinkCalendar
from lasthop.decision.preferences import Preferences
from lasthop.events import Kind
from lasthop.pipeline import silver
from lasthop.pipeline.gold.calendar import LINK_CALENDAR, link_calendar, link_hours, zones
from lasthop.pipeline.gold.heartbeat import BEST_INTERVALS, SURVIVAL, best_intervals, survival
from lasthop.pipeline.gold.reading import READ_PROFILES, WAKING, read_profiles
from lasthop.pipeline.silver import CONTACTS, HEARTBEATS
from tests.pipeline.rows import NOON, History, frame, keeps_to

MONDAY = NOON + 3 * DAY - 12 * HOUR
"""Midnight."""


def contact(start: int, end: int | None, link: str = "wifi", dev: str = "phone") -> dict[str, Any]:
    return {"app": "app", "dev": dev, "link": link, "started_at": start, "ended_at": end}


def calendar_of(
    spark: SparkSession, contacts: list[dict[str, Any]], *, until: int, zone: str | None = None
) -> dict[str, list[float]]:
    history = History()
    history.tell(Kind.CONTEXT_CHANGED, zone="Europe/Oslo" if zone else "")
    terms = encode_preferences(Preferences(zone=zone)).decode() if zone else "{}"
    history.tell(Kind.PREFERENCES_CHANGED, terms=terms)
    hours = link_hours(frame(spark, CONTACTS, contacts), zones(history.frame(spark)), until=until)
    table = link_calendar(hours)
    keeps_to(table, LINK_CALENDAR)
    rows = table.collect()
    for row in rows:
        LinkCalendar(row["zone"], {row["link"]: tuple(row["hours"])})  # What a gateway takes.
        assert row["zone"] == (zone or "UTC")
    return {row["link"]: row["hours"] for row in rows}


def test_hours_lean_on_the_day_and_the_day_on_the_link(spark: SparkSession) -> None:
    # Two weeks; wifi in the hour from nine, on the first Monday and Tuesday only.
    contacts = [
        contact(MONDAY, MONDAY + 1),
        contact(MONDAY + 9 * HOUR, MONDAY + 10 * HOUR),
        contact(MONDAY + DAY + 9 * HOUR + MINUTE, MONDAY + DAY + 9 * HOUR + 2 * MINUTE),
    ]
    hours = calendar_of(spark, contacts, until=MONDAY + 14 * DAY)["wifi"]
    overall = 3 / 336
    nine = (2 + 2 * overall) / (14 + 2)
    assert hours[9] == pytest.approx((1 + 2 * nine) / (2 + 2), abs=1e-6)
    assert hours[2 * 24 + 9] == pytest.approx((0 + 2 * nine) / 4, abs=1e-6)
    ten = (0 + 2 * overall) / 16
    assert hours[10] == pytest.approx(2 * ten / 4, abs=1e-6)
    assert hours[9] > hours[33 + 24] > hours[10] > 0


def test_a_contact_that_is_not_over_lasts_until_the_end_of_the_log(spark: SparkSession) -> None:
    hours = calendar_of(spark, [contact(MONDAY, None)], until=MONDAY + 7 * DAY)["wifi"]
    assert hours == [1.0] * 168


def test_hours_are_those_of_the_device(spark: SparkSession) -> None:
    contacts = [contact(MONDAY, MONDAY + 1), contact(MONDAY + 9 * HOUR, MONDAY + 10 * HOUR)]
    hours = calendar_of(spark, contacts, until=MONDAY + 7 * DAY, zone="Asia/Tokyo")["wifi"]
    # Nine in the morning of UTC is six in the evening there, midnight nine in the morning.
    assert sorted(range(168), key=lambda hour: -hours[hour])[:2] == [9, 18]


def beat(interval: int, answered: bool, count: int = 1) -> list[dict[str, Any]]:
    row = {"dev": "phone", "link": "mno", "network": "op:a", "interval": interval * SECOND}
    return [{**row, "answered": answered}] * count


def test_survival_pools_what_lived_longer_and_died_earlier(spark: SparkSession) -> None:
    beats = frame(
        spark,
        HEARTBEATS,
        [*beat(60, True, 30), *beat(127, True, 60), *beat(240, True, 9), *beat(240, False, 11)],
    )
    curve = survival(beats)
    keeps_to(curve, SURVIVAL)
    found = {r["interval"] // SECOND: (r["at_risk"], r["survival"]) for r in curve.collect()}
    assert found == {60: (99, 1.0), 120: (69, 1.0), 240: (20, 9 / 20)}
    best = best_intervals(curve, beats)
    keeps_to(best, BEST_INTERVALS)
    (row,) = best.collect()
    assert (row["network"], row["interval"], row["observations"]) == ("op:a", 120 * SECOND, 69)


def test_an_interval_with_little_behind_it_is_not_trusted(spark: SparkSession) -> None:
    beats = frame(spark, HEARTBEATS, [*beat(60, True, 15), *beat(900, True, 10)])
    (row,) = best_intervals(survival(beats), beats).collect()
    assert row["interval"] == 60 * SECOND


def test_a_reader_s_profile(spark: SparkSession) -> None:
    history = History()
    tell = history.tell
    for number in range(10):
        t = NOON + number * 10 * MINUTE
        tell(Kind.ACCEPTED, t, msg=number + 1, topic="news", rank=0.5, before=t + 100 * HOUR)
    tell(Kind.RANK_CHANGED, NOON + 5 * MINUTE, msg=1, topic="news", rank=-1.0)
    tell(Kind.RANK_CHANGED, NOON + 5 * MINUTE, msg=2, topic="news", rank=0.9)
    tell(Kind.READ, NOON + 2 * HOUR, topic="news", count=4, queue_size=0)
    tell(Kind.READ, NOON + 4 * HOUR, topic="news", count=6, queue_size=0)
    tell(Kind.READ, NOON + 12 * HOUR, topic="news", count=5, at=NOON + 10 * HOUR)
    events = history.frame(spark)
    table = read_profiles(
        silver.reads(events),
        silver.deliveries(events),
        silver.rank_changes(events),
        until=NOON + 2 * DAY,
    )
    keeps_to(table, READ_PROFILES)
    (row,) = table.collect()
    assert (row["days"], row["reads"], row["reads_per_day"]) == (2.0, 3, 1.5)
    assert (row["wanted"], row["prefetch_limit"]) == (5.0, 10)
    assert row["offline_share"] == pytest.approx(1 / 3)
    assert row["interval_mean"] == 4 * HOUR
    assert (row["arrivals"], row["expiring_share"]) == (10, 1.0)
    assert row["lifetime_mean"] == 100 * HOUR
    # Lifetimes are far above the waking part of the interval between reads.
    assert row["expiration_threshold"] == 4 * HOUR * WAKING // DAY
    assert (row["fallen_share"], row["fall_age_p90"]) == (0.1, 5 * MINUTE)
    assert row["retraction_delay"] == 5 * MINUTE
    hours = row["hours"]
    assert (hours[14], hours[16], hours[22], sum(hours)) == (0.5, 0.5, 0.5, 1.5)
