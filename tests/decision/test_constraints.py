"""Quiet hours, caps and digests one by one, with the odd nights of the year."""

from __future__ import annotations

from datetime import datetime
from math import nan
from random import Random

import msgspec
import pytest

from lasthop.clock import DAY, HOUR, MINUTE, Micros
from lasthop.decision.constraints import (
    Before,
    Constraint,
    Digest,
    FrequencyCap,
    NotBefore,
    QuietHours,
    Tolerance,
)
from lasthop.decision.localtime import LAST_INSTANT, Period, instant, local, period_at, zone
from lasthop.decision.schedule import CapCounter
from lasthop.errors import InvalidRequest

BERLIN = "Europe/Berlin"


def at(text: str, name: str = BERLIN) -> Micros:
    """The instant of a local time; `+` in front: its second pass."""
    moment = datetime.fromisoformat(text.removeprefix("+")).replace(tzinfo=zone(name))
    return instant(moment.replace(fold=text.startswith("+")))


def hm(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def quiet(start: str, end: str, name: str = BERLIN, **more: object) -> QuietHours:
    return QuietHours(name, hm(start), hm(end), **more)  # type: ignore[arg-type]


NIGHT = quiet("22:00", "07:00")


@pytest.mark.parametrize(
    "now, end",
    [
        ("2026-01-05T21:59", "2026-01-05T21:59"),
        ("2026-01-05T22:00", "2026-01-06T07:00"),
        ("2026-01-06T06:59", "2026-01-06T07:00"),
        ("2026-01-06T07:00", "2026-01-06T07:00"),
        ("2026-03-28T23:00", "2026-03-29T07:00"),  # an hour shorter
        ("2026-10-24T23:00", "2026-10-25T07:00"),  # an hour longer
    ],
)
def test_a_night_is_quiet_until_the_clock_says_otherwise(now: str, end: str) -> None:
    assert NIGHT.next(at(now), 0.0) == at(end)


def test_an_end_that_clocks_skip_comes_when_they_jump() -> None:
    until = quiet("01:00", "02:30").next(at("2026-03-29T01:30"), 0.0)
    assert until == at("2026-03-29T03:00")


def test_a_start_that_clocks_skip_is_quiet_from_the_jump_on() -> None:
    hours = quiet("02:30", "04:00")
    jump = at("2026-03-29T03:00")
    assert hours.next(jump - 1, 0.0) == jump - 1
    assert hours.next(jump, 0.0) == at("2026-03-29T04:00")


def test_both_passes_of_a_repeated_hour_are_quiet() -> None:
    hours = quiet("02:00", "02:30")
    first, second = at("2026-10-25T02:10"), at("+2026-10-25T02:10")
    assert second - first == HOUR
    assert hours.next(first, 0.0) == at("2026-10-25T02:30")
    assert hours.next(second, 0.0) == at("+2026-10-25T02:30")


def test_a_stretch_over_midnight_belongs_to_the_day_on_which_it_starts() -> None:
    fridays = quiet("22:00", "07:00", days=(4,))
    assert fridays.next(at("2026-01-10T03:00"), 0.0) == at("2026-01-10T07:00")
    assert fridays.next(at("2026-01-09T03:00"), 0.0) == at("2026-01-09T03:00")


def test_quiet_days_that_touch_are_one_stretch() -> None:
    weekend = quiet("00:00", "24:00", days=(5, 6))
    assert weekend.next(at("2026-03-28T12:00"), 0.0) == at("2026-03-30T00:00")
    assert quiet("00:00", "24:00").next(at("2026-03-28T12:00"), 0.0) is None


def test_a_high_rank_overrides_quiet_hours() -> None:
    hours = quiet("22:00", "07:00", override=5.0)
    midnight = at("2026-01-06T00:00")
    assert hours.next(midnight, 4.9) == at("2026-01-06T07:00")
    assert hours.next(midnight, 5.0) == midnight


def test_bounds_hold_to_the_microsecond() -> None:
    assert NotBefore(5).next(4, 0.0) == 5
    assert Before(5).next(4, 0.0) == 4
    assert Before(5).next(5, 0.0) is None
    assert Tolerance(3, 2).next(5, 0.0) == 5
    assert Tolerance(3, 2).next(6, 0.0) is None


def cap(limit: int, *, sent: int = 0, ahead: int = 0) -> FrequencyCap:
    return FrequencyCap(limit, Period.DAY, BERLIN, at("2026-03-28T12:00"), sent, ahead)


@pytest.mark.parametrize(
    "limit, sent, ahead, turn",
    [
        (2, 0, 0, "2026-03-28T12:00"),
        (2, 1, 0, "2026-03-28T12:00"),
        (2, 2, 0, "2026-03-29T00:00"),
        (2, 1, 1, "2026-03-29T00:00"),
        (2, 0, 3, "2026-03-29T00:00"),
        (2, 0, 4, "2026-03-30T00:00"),
        (2, 9, 2, "2026-03-30T00:00"),  # the cap was lowered after nine were sent
    ],
)
def test_a_cap_gives_each_rank_its_turn(limit: int, sent: int, ahead: int, turn: str) -> None:
    assert cap(limit, sent=sent, ahead=ahead).next(at("2026-03-28T12:00"), 0.0) == at(turn)


def test_a_cap_of_nothing_never_has_a_turn() -> None:
    assert cap(0).next(at("2026-03-28T12:00"), 0.0) is None
    assert cap(1, ahead=10**9).next(at("2026-03-28T12:00"), 0.0) is None


@pytest.mark.parametrize("seed", range(3))
def test_a_counted_cap_lets_as_many_through_as_it_says_in_every_period(seed: int) -> None:
    random = Random(seed)
    counter = CapCounter(random.randrange(1, 4), random.choice(list(Period)), BERLIN)
    waiting = 0
    sent: dict[int, int] = {}
    now = at("2026-03-20T00:00")
    for _ in range(150):
        now += random.randrange(8 * HOUR)
        waiting += random.randrange(3)
        start, _ = period_at(now, counter.period, zone(BERLIN))
        while waiting and counter.constraint(now).next(now, 0.0) == now:
            counter.record(now)
            waiting -= 1
            sent[start] = sent.get(start, 0) + 1
            if random.random() < 0.2:
                counter.withdraw(now)
                waiting += 1
                sent[start] -= 1
        assert sent.get(start, 0) == counter.limit or not waiting
    assert max(sent.values()) <= counter.limit


def digest(since: str, *times: str, **more: object) -> Digest:
    return Digest(BERLIN, at(since), tuple(map(hm, times)), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "since, times, due",
    [
        ("2026-01-05T07:00", ("08:00", "18:00"), "2026-01-05T08:00"),
        ("2026-01-05T08:00", ("08:00", "18:00"), "2026-01-05T08:00"),
        ("2026-01-05T08:01", ("18:00", "08:00"), "2026-01-05T18:00"),
        ("2026-01-05T18:01", ("08:00", "18:00"), "2026-01-06T08:00"),
        ("2026-03-29T00:00", ("02:30",), "2026-03-29T03:00"),  # skipped: at the jump
        ("2026-10-25T00:00", ("02:30",), "2026-10-25T02:30"),  # twice: the first time
        ("+2026-10-25T02:10", ("02:30",), "2026-10-26T02:30"),
    ],
)
def test_a_digest_is_due_at_its_next_time_of_day(
    since: str, times: tuple[str, ...], due: str
) -> None:
    assert digest(since, *times).moment() == at(due)


def test_a_weekly_digest_waits_for_its_day() -> None:
    assert digest("2026-01-05T09:00", "08:00", days=(0,)).moment() == at("2026-01-12T08:00")


@pytest.mark.parametrize("name", [BERLIN, "America/New_York", "Australia/Lord_Howe"])
def test_a_digest_is_found_as_by_looking_at_the_clock(name: str) -> None:
    random = Random(name)
    tz = zone(name)
    for _ in range(30):
        since = at("2026-01-01T00:00") + random.randrange(365 * DAY) // MINUTE * MINUTE
        time = random.choice([random.randrange(1440), random.randrange(110, 190)])
        reached: set[object] = set()
        expected = None
        for moment in range(since - 30 * HOUR, since + 60 * HOUR, MINUTE):
            here = local(moment, tz)
            if here.hour * 60 + here.minute >= time and here.date() not in reached:
                reached.add(here.date())
                if moment >= since:
                    expected = moment
                    break
        assert Digest(name, since, (time,)).moment() == expected


def test_constraints_are_values_that_can_be_stored() -> None:
    every: list[Constraint] = [
        NotBefore(5),
        Before(9),
        Tolerance(1, 2),
        NIGHT,
        cap(3),
        digest("2026-01-05T07:00", "08:00"),
    ]
    stored = msgspec.json.encode(every)
    assert msgspec.json.decode(stored, type=list[Constraint]) == every


def test_constraints_that_mean_nothing_are_refused() -> None:
    for wrong in (-1, LAST_INSTANT + 1):
        with pytest.raises(InvalidRequest, match="deliver_after"):
            NotBefore(wrong)
        with pytest.raises(InvalidRequest, match="deliver_before"):
            Before(wrong)
    with pytest.raises(InvalidRequest, match="between 0 and 31 days"):
        Tolerance(0, -1)
    with pytest.raises(InvalidRequest, match="no such time zone"):
        quiet("22:00", "07:00", "Europe/Atlantis")
    with pytest.raises(InvalidRequest, match="minutes of the day"):
        quiet("25:00", "07:00")
    with pytest.raises(InvalidRequest, match="must not start and end at the same time"):
        quiet("07:00", "07:00")
    with pytest.raises(InvalidRequest, match="weekdays"):
        quiet("22:00", "07:00", days=())
    with pytest.raises(InvalidRequest, match="weekdays"):
        quiet("22:00", "07:00", days=(7,))
    with pytest.raises(InvalidRequest, match="rank must be a number"):
        quiet("22:00", "07:00", override=nan)
    with pytest.raises(InvalidRequest, match="counts cannot be negative"):
        cap(-1)
    with pytest.raises(InvalidRequest, match="cap cannot be negative"):
        CapCounter(-1, Period.DAY, BERLIN)
    with pytest.raises(InvalidRequest, match="no such time zone"):
        CapCounter(1, Period.DAY, "Atlantis")
    with pytest.raises(InvalidRequest, match="1 to 24 times"):
        digest("2026-01-05T07:00")
    with pytest.raises(InvalidRequest, match="minutes of the day"):
        digest("2026-01-05T07:00", "24:00")
