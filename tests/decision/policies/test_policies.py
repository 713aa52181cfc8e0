"""Every policy by itself: how much it lets go, and what it learns.

About `decision/policies/`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lasthop.clock import DAY, HOUR, MINUTE
from lasthop.decision import policies
from lasthop.decision.policies import POLICIES, Policy, Tuning
from lasthop.decision.policies.averages import MovingAverage, MovingInterval
from lasthop.decision.policies.rate import RatePolicy
from lasthop.decision.policies.rhythm import Rhythm
from lasthop.decision.policies.unified import Unified


def looks(policy: Policy, days: int, *hours: int, wanted: int = 8, offline: bool = True) -> None:
    for day in range(days):
        for hour in hours:
            policy.read(wanted=wanted, offline=offline, at=day * DAY + hour * HOUR)


def test_a_policy_fits_on_a_few_screens() -> None:
    for module in Path(policies.__file__).parent.glob("*.py"):
        assert len(module.read_text().splitlines()) < 150


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_begins_with_an_answer_to_everything(name: str) -> None:
    policy = POLICIES[name](Tuning(max=4))
    assert policy.arrived(lifetime=HOUR, now=0) == 0
    policy.rank_fell(age=0)
    assert policy.room(on_device=0) >= 1
    assert policy.worth(lifetime=None, now=0) is (name != "on-demand")


def test_averages_forget_what_is_old() -> None:
    average, interval = MovingAverage(2), MovingInterval(2)
    assert average.mean() is None
    assert interval.mean() is None
    for value in (100, 2, 4):
        average.add(value)
    for moment in (0, 100, 102, 106):
        interval.add(moment)
    assert average.mean() == 3
    assert interval.mean() == 3


def test_a_buffer_is_full_at_its_limit() -> None:
    buffer = POLICIES["buffer"](Tuning(prefetch_limit=3))
    assert [buffer.room(on_device=count) for count in (0, 2, 3)] == [3, 1, 0]


def test_a_rate_lets_one_in_five_go() -> None:
    rate = RatePolicy(Tuning())
    for hour in range(300):
        rate.arrived(lifetime=None, now=hour * HOUR)
        if hour % 10 == 0:
            rate.read(wanted=2, offline=False, at=hour * HOUR)
    assert rate.ratio() == pytest.approx(0.2)
    while rate.room(on_device=0):
        rate.forwarded()
    for hour in range(300, 350):
        rate.arrived(lifetime=None, now=hour * HOUR)
    assert rate.room(on_device=0) == pytest.approx(10, abs=1)


def test_the_prefetch_limit_is_twice_what_a_read_takes() -> None:
    unified = Unified(Tuning(max=8))
    assert unified.prefetch_limit == 16
    looks(unified, 20, 9, wanted=3)
    assert unified.prefetch_limit == 6


def test_the_threshold_is_learned_only_for_events_that_live_long() -> None:
    short = Unified(Tuning(expiration_threshold=HOUR))
    for _ in range(10):
        short.arrived(lifetime=4 * HOUR, now=0)
    looks(short, 10, 9, 21)
    assert short.expiration_threshold == HOUR

    long = Unified(Tuning(expiration_threshold=HOUR))
    for _ in range(10):
        long.arrived(lifetime=6 * DAY, now=0)
    looks(long, 10, 9, 21)
    # Two reads a day are eight waking hours apart.
    assert long.expiration_threshold == pytest.approx(8.25 * HOUR)


def test_new_events_wait_while_ranks_fall_and_no_longer_when_they_stop() -> None:
    unified = Unified(Tuning())
    for number in range(100):
        unified.arrived(lifetime=None, now=number)
        if number % 5 == 0:
            unified.rank_fell(age=number * MINUTE)
    assert unified.arrived(lifetime=None, now=100) == 85 * MINUTE
    assert unified.arrived(lifetime=10 * MINUTE, now=100) == 5 * MINUTE
    for number in range(600):
        unified.arrived(lifetime=None, now=number)
    assert unified.arrived(lifetime=None, now=700) == 0


def test_a_rhythm_knows_night_from_day_and_when_the_user_is_done() -> None:
    rhythm = Rhythm()
    for day in range(60):
        rhythm.read(day * DAY + 9 * HOUR)
        rhythm.read(day * DAY + 19 * HOUR)
    late = 59 * DAY + 23 * HOUR
    assert rhythm.chance(late, late + 6 * HOUR) < 0.1
    assert rhythm.chance(late, late + 12 * HOUR) > 0.5
    done = 59 * DAY + 19 * HOUR + MINUTE
    assert rhythm.chance(done, done + 2 * HOUR) < 0.1
    tomorrow = 60 * DAY + 18 * HOUR
    assert rhythm.chance(tomorrow, tomorrow + 2 * HOUR) > 0.25


def test_a_rhythm_moves_with_its_user() -> None:
    rhythm = Rhythm()
    for day in range(100):
        rhythm.read(day * DAY + 9 * HOUR)
    for day in range(100, 300):
        rhythm.read(day * DAY + 15 * HOUR)
    noon = 299 * DAY + 38 * HOUR
    assert rhythm.chance(noon, noon + 2 * HOUR) > 2 * rhythm.chance(
        noon - 6 * HOUR, noon - 4 * HOUR
    )


def test_prediction_sends_what_will_be_read_and_saves_what_will_not_or_can_wait() -> None:
    policy = POLICIES["predictive"](Tuning())
    looks(policy, 60, 9, 19)
    evening = 59 * DAY + 22 * HOUR
    assert not policy.worth(lifetime=6 * HOUR, now=evening)
    assert policy.worth(lifetime=11 * HOUR + 5 * MINUTE, now=evening)
    online = POLICIES["predictive"](Tuning())
    looks(online, 60, 9, 19, offline=False)
    assert not online.worth(lifetime=11 * HOUR + 5 * MINUTE, now=evening)
