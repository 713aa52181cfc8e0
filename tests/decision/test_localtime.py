"""Periods tile time, in every zone and through every change of the clock."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import DAY, HOUR, MINUTE
from lasthop.decision.localtime import (
    LAST_INSTANT,
    Period,
    check_instant,
    instant,
    local,
    offset_change,
    period_after,
    period_at,
    zone,
)
from lasthop.errors import InvalidRequest

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # midnight skipped and shown twice, until 2019
    "America/St_Johns",  # set back at 0:01, until 2011
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "Pacific/Apia",  # a whole day skipped in 2011
    "Africa/Casablanca",
    "Asia/Kathmandu",
)


def utc(*fields: int) -> int:
    return instant(datetime(*fields, tzinfo=UTC))  # type: ignore[arg-type,misc]


instants = st.integers(utc(2005, 1, 1), utc(2035, 1, 1))


@given(at=instants, name=st.sampled_from(ZONES), period=st.sampled_from(Period))
def test_a_period_holds_its_instant_and_touches_the_next(
    at: int, name: str, period: Period
) -> None:
    tz = zone(name)
    start, end = period_at(at, period, tz)
    assert start <= at < end
    assert period_at(start, period, tz) == (start, end)
    assert period_at(end - 1, period, tz) == (start, end)
    assert period_at(end, period, tz)[0] == end
    assert period_after(at, period, tz, 1) == end


@pytest.mark.parametrize(
    "name, day",
    [
        ("America/St_Johns", (2010, 11, 7)),
        ("America/Sao_Paulo", (2018, 11, 4)),
        ("America/Sao_Paulo", (2018, 2, 18)),
        ("Pacific/Apia", (2011, 12, 30)),
        ("Europe/Berlin", (2026, 3, 29)),
        ("Europe/Berlin", (2026, 10, 25)),
    ],
)
@pytest.mark.parametrize("period", Period)
def test_no_instant_of_an_odd_day_is_lost_or_counted_twice(
    name: str, day: tuple[int, int, int], period: Period
) -> None:
    tz = zone(name)
    noon = utc(*day, 12)
    moments = range(noon - 36 * HOUR, noon + 36 * HOUR, 7 * MINUTE)
    seen = [period_at(at, period, tz) for at in moments]
    assert all(start <= at < end for at, (start, end) in zip(moments, seen, strict=True))
    for before, after in pairwise(seen):
        assert after == before or after[0] == before[1]


def test_days_have_the_length_that_clocks_give_them() -> None:
    tz = zone("Europe/Berlin")
    spring = period_at(utc(2026, 3, 29, 12), Period.DAY, tz)
    autumn = period_at(utc(2026, 10, 25, 12), Period.DAY, tz)
    assert spring[1] - spring[0] == 23 * HOUR
    assert autumn[1] - autumn[0] == 25 * HOUR
    week = period_at(utc(2026, 3, 29, 12), Period.WEEK, tz)
    assert local(week[0], tz).weekday() == 0
    month = period_at(utc(2026, 12, 31, 22, 59), Period.MONTH, tz)
    assert month == (utc(2026, 11, 30, 23), utc(2026, 12, 31, 23))


def test_a_change_of_the_clock_is_found_to_the_microsecond() -> None:
    tz = zone("Europe/Berlin")
    change = utc(2026, 3, 29, 1)
    assert offset_change(change - DAY, change + DAY, tz) == change
    assert offset_change(change - DAY, change - 1, tz) is None
    assert offset_change(change, change + DAY, tz) is None


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "Europe", "/etc/passwd"])
def test_a_zone_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="no such time zone"):
        zone(name)


def test_instants_beyond_the_calendar_are_refused() -> None:
    check_instant("at", LAST_INSTANT)
    with pytest.raises(InvalidRequest, match="between the years 1970 and 9000"):
        check_instant("at", LAST_INSTANT + 1)
    with pytest.raises(InvalidRequest, match="between the years 1970 and 9000"):
        check_instant("at", -1)
    assert period_after(utc(2026, 1, 1), Period.MONTH, zone("UTC"), 10**9) is None
