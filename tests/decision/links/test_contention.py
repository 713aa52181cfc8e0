"""Latency and contention learned from a conversation between two ends with unrelated clocks."""

from __future__ import annotations

from math import nan

import msgspec
import pytest

from lasthop.clock import DAY, MILLISECOND, SECOND
from lasthop.decision.contention import (
    REPORT_AFTER,
    Echo,
    Estimate,
    Observer,
    RateMeter,
    Reporter,
    Stamp,
    contended,
)
from lasthop.decision.links import MAX_CONTENTION
from lasthop.errors import InvalidRequest
from tests.decision.links.worlds import MONDAY, WIFI

SKEW = 400 * DAY
"""The receiver's clock is more than a year ahead."""


def converse(
    *, there: int, back: int, stay: int, every: int, size: int = 1000, slowdown: float = 1.0
) -> Estimate:
    """A minute of messages; a contended link delivers them `slowdown` times more slowly."""
    observer, reporter = Observer(), Reporter()
    for number in range(60 * SECOND // every):
        left = MONDAY + number * every
        stamp = observer.stamp(size, left)
        came = MONDAY + there + round(number * every * slowdown)
        reporter.received(stamp, size=size, now=came + SKEW)
        echo = reporter.take(came + stay + SKEW)
        assert echo is not None
        assert observer.echoed(echo, came + stay + back)
    return observer.estimate


def test_latency_leaves_out_the_stay_and_compares_no_clocks() -> None:
    estimate = converse(
        there=200 * MILLISECOND, back=50 * MILLISECOND, stay=900 * MILLISECOND, every=SECOND // 10
    )
    assert estimate.latency == 250 * MILLISECOND
    assert estimate.contention == pytest.approx(1, abs=0.01)
    assert not contended(estimate)


def test_a_link_that_delivers_more_slowly_than_it_takes_is_contended() -> None:
    estimate = converse(there=0, back=0, stay=0, every=SECOND // 10, slowdown=3.0)
    assert estimate.contention == pytest.approx(3, rel=0.1)
    assert contended(estimate)
    slower = estimate.applied(WIFI)
    assert slower.contention == estimate.contention
    assert slower.transit(0) > 3 * (estimate.latency or 0) * 0.9


def test_a_new_place_is_learned_and_one_odd_sample_is_forgotten() -> None:
    observer = Observer()

    def sample(latency: int) -> None:
        observer.echoed(Echo(Stamp(MONDAY, 100), 0, 100), MONDAY + latency)

    for _ in range(50):
        sample(100_000)
    assert observer.estimate.latency == 100_000
    sample(2_100_000)
    assert observer.estimate.latency == 350_000
    for _ in range(50):
        sample(100_000)
    assert observer.estimate.latency == pytest.approx(100_000, rel=0.02)


@pytest.mark.parametrize(
    "echo",
    [
        Echo(Stamp(MONDAY + 1, 1), 0, 1),  # sent in the future
        Echo(Stamp(MONDAY - 10, 1), 11, 1),  # kept longer than it was away
        Echo(Stamp(MONDAY - 10, 1), -1, 1),
        Echo(Stamp(MONDAY - 10, -5), 0, 1),
        Echo(Stamp(MONDAY - 10, 5), 0, -1),
    ],
)
def test_what_cannot_be_true_teaches_nothing(echo: Echo) -> None:
    observer = Observer()
    assert not observer.echoed(echo, MONDAY)
    assert observer.estimate == Estimate()


def test_a_silent_receiver_counts_as_most_contended_and_silence_as_none() -> None:
    observer = Observer()
    observer.echoed(Echo(Stamp(MONDAY, 10), 0, 0), MONDAY)
    assert observer.estimate.contention == MAX_CONTENTION
    quiet = Observer()
    quiet.echoed(Echo(Stamp(MONDAY, 0), 0, 0), MONDAY)
    assert quiet.estimate.contention == 1


def test_a_report_rides_on_what_goes_back_or_goes_alone_when_it_is_due() -> None:
    reporter = Reporter()
    assert reporter.take(MONDAY) is None
    reporter.received(Stamp(1, 2), size=10, now=MONDAY)
    reporter.received(Stamp(3, 4), size=10, now=MONDAY + SECOND)
    due = reporter.due
    assert due == MONDAY + REPORT_AFTER, "the first that waits sets the time"
    echo = reporter.take(MONDAY + 3 * SECOND // 2)
    assert echo is not None
    assert (echo.stamp, echo.held_for) == (Stamp(3, 4), SECOND // 2)
    assert reporter.due is None
    assert reporter.take(MONDAY + 2 * SECOND) is None


def test_a_rate_is_what_flows_and_fades_when_nothing_does() -> None:
    meter = RateMeter()
    for step in range(300):
        meter.count(100, MONDAY + step * SECOND // 10)
    assert meter.rate(MONDAY + 30 * SECOND) == pytest.approx(1000, rel=0.03)
    assert meter.rate(MONDAY + 90 * SECOND) == 0


def test_estimates_survive_a_restart() -> None:
    estimate = Estimate(5, 2.0, 7)
    stored = msgspec.json.encode(estimate)
    assert Observer(msgspec.json.decode(stored, type=Estimate)).estimate == estimate
    assert Estimate().applied(WIFI) == WIFI


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="due in the past"):
        Reporter(report_after=-1)
    for threshold in (0.5, nan):
        with pytest.raises(InvalidRequest, match="threshold"):
            contended(Estimate(), threshold=threshold)
