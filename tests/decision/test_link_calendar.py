"""The link calendar, and the delay that follows from it."""

from __future__ import annotations

from math import nan
from random import Random

import pytest

from lasthop.clock import DAY, HOUR, MINUTE
from lasthop.decision.delay import MAX_DELAY, Wait, adapt
from lasthop.decision.link_calendar import HOURS, CalendarEntry, LinkCalendar, hours_between
from lasthop.decision.localtime import local, zone
from lasthop.errors import InvalidRequest
from tests.decision.worlds import MONDAY

WORK = (0, 1, 2, 3, 4)


def week(link: str = "wifi", *, zone_name: str = "UTC", **hours: float) -> LinkCalendar:
    table = [0.0] * HOURS
    for name, probability in hours.items():
        table[int(name.removeprefix("h"))] = probability
    return LinkCalendar(zone_name, {link: tuple(table)})


def test_people_write_hours_and_later_lines_hold() -> None:
    calendar = LinkCalendar.of(
        [CalendarEntry("wifi", WORK, 9, 18, 0.9), CalendarEntry("wifi", (4,), 14, 18, 0.2)],
        zone_name="UTC",
    )
    friday = MONDAY + 4 * DAY

    def at(start: int) -> float:
        return calendar.probability("wifi", start=start, end=start + 1)

    assert at(MONDAY + 9 * HOUR) == at(friday + 13 * HOUR) == 0.9
    assert at(friday + 14 * HOUR) == 0.2
    assert at(MONDAY + 18 * HOUR) == at(MONDAY + 5 * DAY + 9 * HOUR) == 0.0
    assert calendar.probability("sms", start=MONDAY, end=MONDAY + DAY) == 0.0


def test_the_best_hour_within_reach_counts() -> None:
    calendar = week(h9=0.4, h10=0.8)
    nine = MONDAY + 9 * HOUR
    assert calendar.probability("wifi", start=nine, end=nine + HOUR) == 0.4
    assert calendar.probability("wifi", start=nine, end=nine + HOUR + 1) == 0.8
    assert calendar.probability("wifi", start=nine, end=nine) == 0.0
    assert calendar.probability("wifi", start=nine + 2 * HOUR, end=nine + 30 * DAY) == 0.8


@pytest.mark.parametrize(
    "name", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
)
def test_hours_are_those_of_the_wall_clock_through_every_change(name: str) -> None:
    random = Random(name)
    tz = zone(name)
    for _ in range(200):
        start = MONDAY + random.randrange(365 * DAY) // MINUTE * MINUTE
        end = start + random.randrange(1, 5 * HOUR)
        looked_up = {
            24 * here.weekday() + here.hour
            for here in (local(at, tz) for at in range(start, end, MINUTE))
        }
        assert set(hours_between(start, end, tz)) == looked_up


def test_the_delay_is_the_thesis_nine_minutes_of_ten() -> None:
    calendar = week(h9=0.9)
    nine = MONDAY + 9 * HOUR
    wait = adapt(["wifi"], calendar, max_delay=10 * MINUTE, since=nine, now=nine)
    assert wait == Wait("wifi", 0.9, 9 * MINUTE)


def test_the_delay_only_shrinks_while_a_message_waits() -> None:
    random = Random(0)
    for _ in range(200):
        table = tuple(random.choice([0.0, random.random()]) for _ in range(HOURS))
        calendar = LinkCalendar("Europe/Berlin", {"wifi": table})
        since = MONDAY + random.randrange(365 * DAY)
        max_delay = random.randrange(1, 8 * HOUR)
        delays = [
            wait.delay if wait else 0
            for step in range(9)
            for wait in [
                adapt(
                    ["wifi"],
                    calendar,
                    max_delay=max_delay,
                    since=since,
                    now=since + max_delay * step // 8,
                )
            ]
        ]
        assert delays == sorted(delays, reverse=True)
        assert delays[0] <= max_delay
        assert delays[-1] == 0


def test_without_hope_or_calendar_there_is_no_delay() -> None:
    asked = {"max_delay": HOUR, "since": MONDAY, "now": MONDAY}
    assert adapt(["wifi"], None, **asked) is None
    assert adapt([], week(h0=1.0), **asked) is None
    assert adapt(["wifi"], week(h5=1.0), **asked) is None


def test_calendars_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="at least one link"):
        LinkCalendar("UTC", {})
    with pytest.raises(InvalidRequest, match="at least one link"):
        LinkCalendar.of([], zone_name="UTC")
    with pytest.raises(InvalidRequest, match="168 probabilities"):
        LinkCalendar("UTC", {"wifi": (0.5,) * 24})
    with pytest.raises(InvalidRequest, match="between 0 and 1"):
        week(h0=1.5)
    with pytest.raises(InvalidRequest, match="between 0 and 1"):
        CalendarEntry("wifi", WORK, 9, 18, nan)
    with pytest.raises(InvalidRequest, match="weekdays"):
        CalendarEntry("wifi", (7,), 9, 18, 0.5)
    with pytest.raises(InvalidRequest, match="weekdays"):
        CalendarEntry("wifi", (), 9, 18, 0.5)
    with pytest.raises(InvalidRequest, match="hours must be from"):
        CalendarEntry("wifi", WORK, 18, 9, 0.5)
    with pytest.raises(InvalidRequest, match="no such time zone"):
        week(zone_name="Berlin")
    with pytest.raises(InvalidRequest, match="label"):
        week(link="")
    with pytest.raises(InvalidRequest, match="between 0 and 31 days"):
        adapt(["wifi"], week(), max_delay=MAX_DELAY + 1, since=MONDAY, now=MONDAY)
