"""Wishes that contradict each other are refused, and days follow the user's clock."""

from __future__ import annotations

from datetime import UTC, date, time
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lasthop.clock import HOUR
from lasthop.decision.volume.daytimes import QuietHours, instant, next_of
from lasthop.decision.volume.subscription import Mode, Subscription

OSLO = ZoneInfo("Europe/Oslo")


@pytest.mark.parametrize(
    "wishes",
    [
        {"max": 0},
        {"storage": 0},
        {"retention": -1},
        {"threshold": float("nan")},
        {"interrupt": float("nan")},
        {"quiet": QuietHours(time(1), time(2))},
        {"times": (time(8),)},
        {"mode": Mode.ON_LINE, "max_per_day": 3},
    ],
)
def test_a_contradiction_is_refused(wishes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is|set"):
        Subscription(**wishes)


def test_quiet_hours_may_cross_midnight() -> None:
    night = QuietHours(time(22), time(7))
    hours = [hour for hour in range(24) if night.covers(hour * HOUR, UTC)]
    assert hours == [0, 1, 2, 3, 4, 5, 6, 22, 23]
    lunch = QuietHours(time(12), time(13))
    assert [hour for hour in range(24) if lunch.covers(hour * HOUR, UTC)] == [12]


def test_a_time_of_day_follows_daylight_saving() -> None:
    before, after = date(2027, 3, 27), date(2027, 3, 29)
    assert instant(after, time(8), OSLO) - instant(before, time(8), OSLO) == 47 * HOUR
    evening = instant(date(2027, 3, 27), time(20), OSLO)
    assert next_of([time(8)], OSLO, evening) == evening + 11 * HOUR


def test_a_time_that_the_clock_skips_comes_as_much_later() -> None:
    midnight = instant(date(2027, 3, 28), time(0), OSLO)
    assert next_of([time(2, 30)], OSLO, midnight) == midnight + 5 * HOUR // 2


def test_the_next_time_is_strictly_later() -> None:
    eight = instant(date(2027, 1, 1), time(8), UTC)
    assert next_of([time(8)], UTC, eight) == eight + 24 * HOUR
    assert next_of([time(8), time(9)], UTC, eight) == eight + HOUR
