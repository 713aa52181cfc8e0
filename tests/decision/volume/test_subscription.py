"""Wishes that contradict each other are refused, and days follow the user's clock."""

from __future__ import annotations

from datetime import UTC, date
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lasthop.clock import HOUR
from lasthop.decision.constraints import QuietHours
from lasthop.decision.volume.agenda import Agenda
from lasthop.decision.volume.subscription import Mode, Subscription
from lasthop.decision.volume.times_of_day import at_minute, next_of
from lasthop.errors import InvalidRequest

OSLO = ZoneInfo("Europe/Oslo")
EIGHT = 8 * 60


@pytest.mark.parametrize(
    "terms",
    [
        {"max": 0},
        {"storage": 0},
        {"retention": -1},
        {"threshold": float("nan")},
        {"interrupt": float("nan")},
        {"quiet": QuietHours("UTC", 60, 120)},
        {"times": (EIGHT,)},
        {"mode": Mode.ON_LINE, "times": (1440,)},
        {"mode": Mode.ON_LINE, "max_per_day": 3},
        {"mode": Mode.ON_LINE, "quiet": QuietHours("UTC", 60, 120, override=1.0)},
    ],
)
def test_a_contradiction_is_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|set"):
        Subscription(**terms)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no such time zone"):
        Subscription(zone="Mars/Olympus")


def test_an_agenda_follows_quiet_hours_and_times_through_the_day() -> None:
    quiet = QuietHours("UTC", 22 * 60, 7 * 60)
    agenda = Agenda(Subscription(mode=Mode.ON_LINE, quiet=quiet, times=(EIGHT,)), 0)
    changes = []
    while agenda.next_change is not None and agenda.next_change < 48 * HOUR:
        now = agenda.next_change
        changes.append((now // HOUR, agenda.turn(now)))
        agenda.due = False
    assert changes == [(7, False), (8, True), (22, False), (31, False), (32, True), (46, False)]


def test_what_falls_due_in_quiet_hours_waits_for_their_end() -> None:
    quiet = QuietHours("UTC", 22 * 60, 7 * 60)
    agenda = Agenda(Subscription(mode=Mode.ON_LINE, quiet=quiet, times=(6 * 60,)), 0)
    assert not agenda.turn(6 * HOUR)
    assert agenda.turn(7 * HOUR)


def test_a_time_of_day_follows_daylight_saving() -> None:
    before, after = date(2027, 3, 27), date(2027, 3, 29)
    assert at_minute(after, EIGHT, OSLO) - at_minute(before, EIGHT, OSLO) == 47 * HOUR
    evening = at_minute(before, 20 * 60, OSLO)
    assert next_of([EIGHT], OSLO, evening) == evening + 11 * HOUR


def test_a_time_that_the_clock_skips_comes_as_much_later() -> None:
    midnight = at_minute(date(2027, 3, 28), 0, OSLO)
    assert next_of([150], OSLO, midnight) == midnight + 5 * HOUR // 2


def test_the_next_time_is_strictly_later() -> None:
    eight = at_minute(date(2027, 1, 1), EIGHT, UTC)
    assert next_of([EIGHT], UTC, eight) == eight + 24 * HOUR
    assert next_of([EIGHT, EIGHT + 60], UTC, eight) == eight + HOUR
