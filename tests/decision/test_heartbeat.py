"""The search for a network's patience: few trials, fewer failures, close to the truth."""

from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import DAY, SECOND, Micros
from lasthop.decision.heartbeat import (
    CEILING,
    FAILURES,
    FLOOR,
    NETWORKS,
    SAFE,
    STEPS,
    TRIALS,
    NetworkPatience,
    Networks,
    interval_of,
    step_of,
)

timeouts = st.floats(log(1.07 * FLOOR), log(CEILING)).map(lambda x: round(exp(x)))


def search(patience: NetworkPatience, timeout: Micros, now: Micros = 0) -> tuple[int, int]:
    """Try until enough is known: trials and failures."""
    trials = failures = 0
    while (interval := patience.next_trial(now)) is not None:
        survived = interval < timeout
        patience.tried(interval, survived=survived, now=now)
        trials, failures = trials + 1, failures + (not survived)
        assert trials < 30
    return trials, failures


def test_steps_and_intervals_are_the_same_thing() -> None:
    assert [step_of(interval_of(step)) for step in range(STEPS + 1)] == list(range(STEPS + 1))
    assert (interval_of(0), interval_of(STEPS)) == (FLOOR, CEILING)
    assert (step_of(1), step_of(10 * CEILING)) == (0, STEPS)


@given(timeouts)
def test_any_timeout_is_found_within_a_tenth_in_eight_trials_of_which_three_fail(
    timeout: Micros,
) -> None:
    patience = NetworkPatience()
    trials, failures = search(patience, timeout)
    assert trials <= TRIALS
    assert failures <= FAILURES
    assert 0.91 * timeout <= patience.interval() < timeout


@given(timeouts)
def test_with_what_others_found_there_is_one_failure(timeout: Micros) -> None:
    first = NetworkPatience()
    search(first, timeout)
    second = NetworkPatience(guess=first.alive)
    trials, failures = search(second, timeout)
    assert trials <= 2
    assert failures == (first.alive < STEPS)
    assert second.interval() == first.interval()


@given(timeouts, st.floats(0.01, 100))
def test_others_may_be_wrong(timeout: Micros, factor: float) -> None:
    patience = NetworkPatience(guess=step_of(round(timeout * factor)))
    trials, failures = search(patience, timeout)
    assert trials <= TRIALS + 5
    assert failures <= FAILURES + 1
    assert 0.91 * timeout <= patience.interval() < timeout


@given(timeouts)
def test_the_working_connection_never_waits_longer_than_what_was_outlived(timeout: Micros) -> None:
    patience = NetworkPatience()
    longest = SAFE
    while (interval := patience.next_trial(0)) is not None:
        assert patience.interval() <= longest
        survived = interval < timeout
        patience.tried(interval, survived=survived, now=0)
        longest = max(longest, interval) if survived else longest


@given(timeouts, timeouts)
def test_a_network_that_loses_patience_is_learned_again(before: Micros, after: Micros) -> None:
    patience = NetworkPatience()
    search(patience, before)
    if after <= patience.interval():
        patience.missed(patience.interval())
        assert patience.interval() <= SAFE
        trials, failures = search(patience, after)
        assert trials <= TRIALS + 1
        assert failures <= FAILURES + 1
        assert 0.91 * after <= patience.interval() < after


def test_an_accident_costs_one_trial() -> None:
    patience = NetworkPatience()
    search(patience, 300 * SECOND)
    before = patience.interval()
    patience.missed(before)
    assert patience.interval() == SAFE
    assert search(patience, 300 * SECOND) == (1, 0)
    assert patience.interval() == before


def test_a_network_that_gains_patience_is_noticed_within_a_day_and_asked_less_and_less() -> None:
    patience = NetworkPatience()
    search(patience, 120 * SECOND)
    assert patience.next_trial(DAY - 1) is None
    assert patience.wait(0) == DAY
    waits = []
    now = DAY
    for _ in range(6):
        assert search(patience, 120 * SECOND, now) == (1, 1)
        wait = patience.wait(now)
        assert wait is not None
        waits.append((wait - now) // DAY)
        now = wait
    assert waits == [2, 4, 8, 16, 16, 16]
    search(patience, 900 * SECOND, now)
    assert patience.interval() >= 0.91 * 900 * SECOND


def test_a_network_without_any_timeout_is_asked_no_more() -> None:
    patience = NetworkPatience()
    assert search(patience, 10 * CEILING)[1] == 0
    assert patience.wait(0) is None
    assert patience.next_trial(1000 * DAY) is None


def test_even_less_than_ten_seconds_ends_somewhere() -> None:
    patience = NetworkPatience()
    search(patience, 5 * SECOND)
    assert patience.interval() <= FLOOR


def test_connections_that_die_before_anything_was_tried_lower_the_first_guess() -> None:
    patience = NetworkPatience()
    patience.missed(SAFE)
    assert patience.interval() < SAFE


def test_networks_are_remembered_and_the_longest_unmet_is_forgotten() -> None:
    networks = Networks()
    search(networks.on("ssid:home"), 300 * SECOND)
    for number in range(NETWORKS - 1):
        networks.on(f"op:{number}")
    again = Networks.load(networks.dump())
    assert again.on("ssid:home").interval() > 270 * SECOND
    again.on("op:new")
    assert again.on("ssid:home").interval() > 270 * SECOND  # Met a moment ago.
    assert Networks.load(again.dump()).on("op:0").alive == -1


@pytest.mark.parametrize("data", [None, b"", b"{", b"[1]", b'{"a": "b"}', b"\xff\xfe"])
def test_a_memory_that_cannot_be_read_is_no_memory(data: bytes | None) -> None:
    assert Networks.load(data).on("any").alive == -1


def test_who_knows_better_does_not_listen() -> None:
    new, learned = NetworkPatience(), NetworkPatience()
    search(learned, 300 * SECOND)
    for patience in (new, learned):
        patience.told(120 * SECOND)
    assert new.next_trial(0) == interval_of(step_of(120 * SECOND))
    assert learned.next_trial(0) is None


def test_what_others_found_is_only_for_networks_that_are_new() -> None:
    networks = Networks()
    search(networks.on("op:one"), 60 * SECOND)
    assert networks.on("op:one", others=900 * SECOND).guess == -1
    assert networks.on("op:two", others=900 * SECOND).guess == step_of(900 * SECOND)
