"""The round trip comes out right although the clocks differ and the delays do too."""

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.wire.hop.frames import Time
from lasthop.wire.hop.roundtrip import (
    INITIAL_TIMEOUT,
    MAX_TIMEOUT,
    MIN_TIMEOUT,
    TIME_EVERY,
    TIME_WITH,
    RoundTrip,
)

NOW = 1_800_000_000_000_000
delays = st.integers(0, 2000).map(lambda ms: ms * MILLISECOND)
offsets = st.integers(-(10**9), 10**9).map(lambda ms: ms * MILLISECOND)


class Figure:
    """The two sides of AMME's figure 6.3: clocks that differ by `offset`, delays to either side."""

    def __init__(self, offset: Micros) -> None:
        self.offset = offset
        self.left = RoundTrip(NOW)
        self.right = RoundTrip(NOW + offset)

    def right_says_its_time(self, at: Micros, delay: Micros) -> None:
        timestamp = self.right.own_time(at + self.offset)
        self.left.on_own_time(timestamp, at + delay)

    def left_answers(self, at: Micros, delay: Micros) -> Micros | None:
        timestamp = self.left.peer_time(at)
        assert timestamp is not None
        return self.right.on_peer_time(timestamp, at + delay + self.offset)


@given(delays, delays, offsets, st.integers(0, 10**6).map(lambda ms: ms * MILLISECOND))
def test_figure_a_a_timestamp_that_comes_back_measures_both_ways(
    there: Micros, back: Micros, offset: Micros, pause: Micros
) -> None:
    figure = Figure(offset)
    figure.right_says_its_time(NOW, there)
    assert figure.left_answers(NOW + there + pause, back) == there + back


@given(delays, delays, delays, offsets)
def test_figure_b_a_newer_timestamp_replaces_the_delay_of_the_first(
    first: Micros, second: Micros, back: Micros, offset: Micros
) -> None:
    figure = Figure(offset)
    figure.right_says_its_time(NOW, first)
    figure.right_says_its_time(NOW + 60 * SECOND, second)
    assert figure.left_answers(NOW + 90 * SECOND, back) == second + back


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**12)), min_size=1))
def test_the_reset_gives_what_the_thesis_formula_gives(steps: list[tuple[int, int]]) -> None:
    ours = RoundTrip(NOW)
    now = NOW
    thesis_not, thesis_npt = 0, 0
    for index, (pause, rot) in enumerate(steps):
        now += pause * MILLISECOND
        ct = now // MILLISECOND
        ours.on_own_time(rot, now)
        if index == 0:
            thesis_not, thesis_npt = rot, ct
        else:
            thesis_not = rot - (ct - thesis_npt)
        later = now + 7 * SECOND
        assert ours.peer_time(later) == thesis_not + (later // MILLISECOND - thesis_npt)


def test_before_the_peers_first_timestamp_nothing_is_believed() -> None:
    assert RoundTrip(NOW).peer_time(NOW) is None


@pytest.mark.parametrize("wrong", [-1, MAX_TIMEOUT // MILLISECOND + 1])
def test_a_wild_timestamp_does_not_spoil_the_average(wrong: int) -> None:
    roundtrip = RoundTrip(NOW)
    roundtrip.sample(50 * MILLISECOND)
    assert roundtrip.on_peer_time(NOW // MILLISECOND - wrong, NOW) is None
    assert roundtrip.smoothed == 50 * MILLISECOND


def test_an_impossible_clock_is_not_believed() -> None:
    roundtrip = RoundTrip(NOW)
    roundtrip.on_own_time(2**63 - 1, NOW)
    assert roundtrip.peer_time(NOW) is None


def test_the_timeout_follows_rfc_6298() -> None:
    roundtrip = RoundTrip(NOW)
    assert roundtrip.timeout == INITIAL_TIMEOUT
    roundtrip.sample(400 * MILLISECOND)
    assert (roundtrip.smoothed, roundtrip.variation) == (400_000, 200_000)
    assert roundtrip.timeout == 1_200_000
    roundtrip.sample(800 * MILLISECOND)
    assert (roundtrip.smoothed, roundtrip.variation) == (450_000, 250_000)
    assert roundtrip.timeout == 1_450_000
    assert roundtrip.backed_off(0) == roundtrip.timeout
    assert roundtrip.backed_off(2) == 4 * roundtrip.timeout
    assert roundtrip.backed_off(1000) == MAX_TIMEOUT


@given(st.lists(st.integers(0, MAX_TIMEOUT), min_size=1))
def test_the_timeout_stays_within_bounds(samples: list[Micros]) -> None:
    roundtrip = RoundTrip(NOW)
    for sample in samples:
        roundtrip.sample(sample)
        assert MIN_TIMEOUT <= roundtrip.timeout <= MAX_TIMEOUT
        assert roundtrip.smoothed is not None
        assert min(samples) - 1 <= roundtrip.smoothed <= max(samples)
        assert roundtrip.variation >= 0


def exchange() -> tuple[RoundTrip, RoundTrip]:
    sides = RoundTrip(NOW), RoundTrip(NOW)
    for side in sides:
        side.on_own_time(NOW // MILLISECOND, NOW)
    return sides


def test_time_rides_with_large_units_and_is_answered_once() -> None:
    ours, theirs = exchange()
    now = NOW + TIME_EVERY
    assert ours.time_to_send(now, TIME_WITH - 1) is None
    time = ours.time_to_send(now, TIME_WITH)
    assert time == Time(now // MILLISECOND, now // MILLISECOND)
    theirs.on_time(time, now)
    answer = theirs.time_to_send(now, 2)
    assert answer is not None
    ours.on_time(answer, now)
    assert ours.time_to_send(now + TIME_EVERY, 2) is None
    assert theirs.time_to_send(now + TIME_EVERY, 2) is None


def test_time_is_sent_at_most_once_in_ten_seconds() -> None:
    ours, _ = exchange()
    assert ours.time_to_send(NOW + TIME_EVERY - 1, TIME_WITH) is None
    assert ours.time_to_send(NOW + TIME_EVERY, TIME_WITH) is not None
    assert ours.time_to_send(NOW + TIME_EVERY + 1, TIME_WITH) is None


def test_without_the_peers_time_none_is_sent() -> None:
    assert RoundTrip(NOW).time_to_send(NOW + TIME_EVERY, TIME_WITH) is None
