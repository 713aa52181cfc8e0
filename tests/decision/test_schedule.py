"""The first moment that all constraints allow, against a look at every minute; and conflicts that
are as small as they can be."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import combinations
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
from lasthop.decision.preferences import Preferences
from lasthop.decision.schedule import (
    MAX_CONSTRAINTS,
    Slot,
    Unsatisfiable,
    conflict,
    constraints_of,
    earliest,
    first_moment,
)
from lasthop.errors import InvalidRequest, TooLarge
from lasthop.message import Message, Target, TargetKind

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]

CHANGES = [
    datetime(2026, 3, 29, 1, tzinfo=UTC),  # Berlin forward
    datetime(2026, 10, 25, 1, tzinfo=UTC),  # Berlin back
    datetime(2026, 3, 8, 7, tzinfo=UTC),  # New York forward
    datetime(2026, 11, 1, 6, tzinfo=UTC),  # New York back
    datetime(2026, 4, 4, 15, tzinfo=UTC),  # Lord Howe back, by half an hour
    datetime(2026, 10, 3, 15, 30, tzinfo=UTC),  # Lord Howe forward
    datetime(2026, 6, 17, 12, tzinfo=UTC),  # nothing happens
]

SPAN = 5 * DAY

NIGHTS = int(os.environ.get("SCHEDULE_NIGHTS", "300"))
"""`make nightly` looks at three thousand."""


def allows(constraint: Constraint, t: Micros, rank: float) -> bool:
    """What each constraint means, said once more and without any search."""
    match constraint:
        case NotBefore(at):
            return t >= at
        case Before(at):
            return t < at
        case Tolerance(since, delay):
            return t <= since + delay
        case QuietHours(name, start, end, days, override):
            if override is not None and rank >= override:
                return True
            here = local(t, zone(name))
            minute, day = here.hour * 60 + here.minute, here.weekday()
            if start < end:
                return not (start <= minute < end and day in days)
            return not (
                (minute >= start and day in days) or (minute < end and (day - 1) % 7 in days)
            )
        case FrequencyCap():
            # Every zone's days begin on a quarter of an hour.
            return places(constraint, t - t % (15 * MINUTE)) > constraint.ahead
        case Digest():
            return t >= due(constraint)


def by_the_minute(constraints: list[Constraint], now: Micros, rank: float) -> Micros | None:
    # What is cheap to look up first; what has passed for good ends the search.
    ordered = sorted(constraints, key=lambda c: isinstance(c, FrequencyCap | Digest | QuietHours))
    for t in range(now, now + SPAN, MINUTE):
        refusing = next((c for c in ordered if not allows(c, t, rank)), None)
        if refusing is None:
            return t
        if isinstance(refusing, Before | Tolerance):
            return None
    return None


@lru_cache
def due(digest: Digest) -> Micros:
    return digest.moment()


@lru_cache
def places(cap: FrequencyCap, t: Micros) -> int:
    """How many places there have been until the end of the period of `t`."""
    _, end = period_at(cap.as_of, cap.period, zone(cap.zone))
    count = max(0, cap.limit - cap.sent)
    while t >= end and cap.limit:
        count += cap.limit
        _, end = period_at(end, cap.period, zone(cap.zone))
    return count


def random_constraint(random: Random, now: Micros) -> Constraint:
    def soon() -> Micros:
        return now + random.randrange(-600, 4000) * MINUTE

    name = random.choice(ZONES)
    days = tuple(sorted(random.sample(range(7), random.choice([7, 7, 5, 2]))))
    match random.randrange(8):
        case 0:
            return NotBefore(soon())
        case 1:
            return Before(soon() + DAY)
        case 2:
            return Tolerance(now, random.randrange(1, 4000) * MINUTE)
        case 3:
            return FrequencyCap(
                random.choice([0, 1, 2, 5]),
                random.choice([Period.DAY, Period.WEEK]),
                name,
                now,
                random.randrange(4),
                random.randrange(4),
            )
        case 4:
            return Digest(name, now, tuple(random.sample(range(1440), 2)), days)
        case _:
            start, end = random.sample(range(0, 1440, random.choice([1, 30, 60])), 2)
            override = random.choice([None, None, 5.0])
            return QuietHours(name, start, end, days, override)


def random_night(random: Random) -> Micros:
    around = random.choice(CHANGES) + timedelta(minutes=random.randrange(-2000, 300))
    return instant(around)


def test_the_first_moment_is_that_of_looking_at_every_minute() -> None:
    random = Random(5)
    found = beyond = 0
    for _ in range(NIGHTS):
        now = random_night(random)
        rank = random.choice([0.0, 9.0])
        constraints = [random_constraint(random, now) for _ in range(random.randrange(1, 6))]
        answer = earliest(constraints, now, rank=rank)
        looked_up = by_the_minute(constraints, now, rank)
        if looked_up is not None:
            assert isinstance(answer, Slot)
            assert answer.at == looked_up
            found += answer.at > now
        elif isinstance(answer, Slot):
            assert answer.at >= now + SPAN
            assert all(allows(constraint, answer.at, rank) for constraint in constraints)
        else:
            beyond += 1
    assert found > NIGHTS // 5
    assert beyond > NIGHTS // 5


def test_a_conflict_is_one_and_every_part_of_it_is_needed() -> None:
    random = Random(6)
    sizes: dict[int, int] = {}
    larger = 0
    while sum(sizes.values()) < 150:
        now = random_night(random)
        constraints = [random_constraint(random, now) for _ in range(random.randrange(2, 8))]
        answer = earliest(constraints, now)
        if isinstance(answer, Slot):
            continue
        culprits = list(answer.conflict)
        assert first_moment(culprits, now, rank=0.0) is None
        for size in range(len(culprits)):
            for fewer in combinations(culprits, size):
                moment = first_moment(fewer, now, rank=0.0)
                assert moment is not None
                assert all(allows(constraint, moment, 0.0) for constraint in fewer)
        # No other part of what was asked for is a smaller conflict.
        for size in range(min(len(culprits), 3)):
            for others in combinations(constraints, size):
                assert first_moment(others, now, rank=0.0) is not None
        larger += len(without_those_to_spare(constraints, now)) > len(culprits)
        sizes[len(culprits)] = sizes.get(len(culprits), 0) + 1
    assert {1, 2, 3} <= sizes.keys(), "some conflicts take three"
    assert larger, "leaving out one by one does not always end at the fewest"


def without_those_to_spare(constraints: list[Constraint], now: Micros) -> list[Constraint]:
    needed = list(constraints)
    for constraint in constraints:
        fewer = [other for other in needed if other is not constraint]
        if first_moment(fewer, now, rank=0.0) is None:
            needed = fewer
    return needed


def hours(start: int, end: int, name: str = "Europe/Berlin") -> QuietHours:
    return QuietHours(name, start * 60, end * 60)


NOON = instant(datetime(2026, 1, 5, 11, tzinfo=UTC))
"""Noon in Berlin."""


def test_constraints_compose() -> None:
    slot = earliest([NotBefore(NOON + 11 * HOUR), hours(22, 7), Before(NOON + DAY)], NOON)
    assert isinstance(slot, Slot)
    assert slot.at == NOON + 19 * HOUR
    assert [str(reason) for reason in slot.reasons] == [
        "deliver_after: not before 2026-01-05T22:00:00Z",
        "quiet hours 22:00-07:00 Europe/Berlin: quiet until 2026-01-06T06:00:00Z",
    ]
    assert earliest([], NOON) == Slot(NOON)


def test_a_digest_in_quiet_hours_comes_when_they_end() -> None:
    slot = earliest([Digest("Europe/Berlin", NOON, (23 * 60,)), hours(22, 7)], NOON)
    assert isinstance(slot, Slot)
    assert slot.at == NOON + 19 * HOUR


def test_a_deadline_within_quiet_hours_is_a_conflict_of_three() -> None:
    every: list[Constraint] = [
        hours(3, 4),
        NotBefore(NOON + 11 * HOUR),
        hours(22, 7),
        Before(NOON + 12 * HOUR),
        Tolerance(NOON, 20 * DAY),
    ]
    answer = earliest(every, NOON)
    assert isinstance(answer, Unsatisfiable)
    assert set(answer.names) == {
        "deliver_after",
        "deliver_before",
        "quiet hours 22:00-07:00 Europe/Berlin",
    }
    assert str(answer.reason()).startswith("no moment satisfies: deliver_after; quiet hours")
    assert earliest(every, NOON, rank=9) == answer
    urgent = [msgspec.structs.replace(c, override=5.0) if c == hours(22, 7) else c for c in every]
    assert isinstance(earliest(urgent, NOON, rank=9), Slot)


def test_quiet_hours_that_leave_nothing_between_them_are_a_conflict() -> None:
    answer = earliest([hours(8, 20), hours(20, 9)], NOON)
    assert isinstance(answer, Unsatisfiable)
    assert len(answer.conflict) == 2


def test_zones_that_meet_only_for_a_few_weeks_are_found() -> None:
    """Half past two in Berlin is half past eight in New York, except while only one of them has
    daylight saving: then it is half past nine."""
    berlin_open = [hours(15, 14, "Europe/Berlin")]
    york_open = [hours(10, 9, "America/New_York")]
    january = instant(datetime(2026, 1, 5, tzinfo=UTC))
    slot = earliest([*berlin_open, *york_open], january)
    assert isinstance(slot, Slot)
    assert local(slot.at, zone("Europe/Berlin")).date().isoformat() == "2026-03-08"


def test_an_error_names_the_conflict() -> None:
    refused = earliest([Before(NOON + 90 * DAY), hours(8, 20), hours(20, 9)], NOON)
    assert isinstance(refused, Unsatisfiable)
    error = refused.error()
    assert (error.code, error.http_status, error.pap_code) == ("contradiction", 422, 3003)
    assert error.fields["conflict"] == (
        "quiet hours 08:00-20:00 Europe/Berlin",
        "quiet hours 20:00-09:00 Europe/Berlin",
    )


def test_a_device_adds_its_quiet_hours_to_what_a_publisher_asks() -> None:
    message = Message(1, 2, "app", "me", Target(TargetKind.DEVICE, "d"), NOON)
    message.deliver_before = NOON + DAY
    preferences = Preferences(quiet=(hours(8, 20),))
    assert preferences.constraints(message, since=NOON, now=NOON) == [
        Before(NOON + DAY),
        hours(8, 20),
    ]
    with pytest.raises(TooLarge, match="too many quiet hours"):
        Preferences(quiet=(hours(8, 20),) * 9)


def test_equal_constraints_are_not_blamed_twice() -> None:
    same = Before(NOON)
    assert conflict([same, same, NotBefore(NOON)], NOON, rank=0.0) == [same]


def test_a_distant_deliver_after_is_still_scheduled() -> None:
    slot = earliest([NotBefore(NOON + 4000 * DAY), hours(22, 7)], NOON)
    assert isinstance(slot, Slot)
    assert slot.at >= NOON + 4000 * DAY


def test_a_message_brings_its_own_constraints() -> None:
    message = Message(1, 2, "app", "me", Target(TargetKind.DEVICE, "d"), NOON)
    assert constraints_of(message, since=NOON, now=NOON) == []
    message.deliver_after, message.deliver_before = NOON + HOUR, NOON + DAY
    message.delay_tolerance = MINUTE
    assert constraints_of(message, since=NOON, now=NOON) == [
        NotBefore(NOON + HOUR),
        Before(NOON + DAY),
        Tolerance(NOON + HOUR, MINUTE),
    ]


def test_a_tolerance_that_absence_has_used_up_allows_this_moment_and_no_later_one() -> None:
    message = Message(1, 2, "app", "me", Target(TargetKind.DEVICE, "d"), NOON)
    message.delay_tolerance = MINUTE
    late = NOON + HOUR
    asked = constraints_of(message, since=NOON, now=late)
    assert earliest(asked, late) == Slot(late)
    refused = earliest([*asked, hours(12, 14)], late)
    assert isinstance(refused, Unsatisfiable)
    assert refused.names == ("delay tolerance", "quiet hours 12:00-14:00 Europe/Berlin")


def test_answers_are_values_that_can_be_stored() -> None:
    for constraints in ([hours(8, 20)], [hours(8, 20), hours(20, 9)]):
        answer = earliest(constraints, NOON)
        stored = msgspec.json.encode(answer)
        assert msgspec.json.decode(stored, type=type(answer)) == answer


def test_too_many_constraints_and_impossible_times_are_refused() -> None:
    with pytest.raises(TooLarge, match="too many constraints"):
        earliest([NotBefore(0)] * (MAX_CONSTRAINTS + 1), NOON)
    with pytest.raises(InvalidRequest, match="between the years 1970 and 9000"):
        earliest([], LAST_INSTANT + 1)
