"""Latency and contention learned from what is sent and acknowledged anyway."""

from __future__ import annotations

import pytest

from lasthop.clock import MILLISECOND, SECOND
from lasthop.decision.budgets import Budgets
from lasthop.decision.choice import Choice
from lasthop.decision.contention import Estimate, Gauge, RateMeter
from lasthop.decision.decide import Action
from lasthop.decision.ledger import BudgetLedger
from lasthop.decision.links import MAX_CONTENTION, Charge
from tests.decision.worlds import MONDAY, WIFI


def converse(*, round_trip: int, every: int, size: int = 1000, slowdown: float = 1.0) -> Estimate:
    """A minute of messages; a contended link delivers them `slowdown` times more slowly."""
    gauge = Gauge()
    for number in range(60 * SECOND // every):
        stamp = gauge.left(size, MONDAY + number * every)
        gauge.arrived(stamp, size, MONDAY + round_trip + round(number * every * slowdown))
    return gauge.estimate


def sample(gauge: Gauge, latency: int) -> None:
    gauge.arrived(gauge.left(100, MONDAY), 100, MONDAY + latency)


def test_latency_is_the_time_until_the_acknowledgement() -> None:
    estimate = converse(round_trip=250 * MILLISECOND, every=SECOND // 10)
    assert estimate.latency == 250 * MILLISECOND
    assert estimate.contention == pytest.approx(1, abs=0.06)


def test_a_link_that_delivers_more_slowly_than_it_takes_is_contended() -> None:
    estimate = converse(round_trip=0, every=SECOND // 10, slowdown=3.0)
    assert estimate.contention == pytest.approx(3, rel=0.1)
    slower = estimate.applied(WIFI)
    assert slower.contention == estimate.contention
    assert slower.transit(0) > 3 * (estimate.latency or 0) * 0.9


def test_a_new_place_is_learned_and_one_odd_sample_is_forgotten() -> None:
    gauge = Gauge()
    for _ in range(50):
        sample(gauge, 100_000)
    assert gauge.estimate.latency == 100_000
    sample(gauge, 2_100_000)
    assert gauge.estimate.latency == 350_000
    for _ in range(50):
        sample(gauge, 100_000)
    assert gauge.estimate.latency == pytest.approx(100_000, rel=0.02)


def test_a_clock_that_was_set_back_teaches_nothing() -> None:
    gauge = Gauge()
    sample(gauge, -1)
    assert gauge.estimate == Estimate()


def test_what_hardly_arrives_counts_as_most_contended_and_silence_as_none() -> None:
    gauge = Gauge()
    gauge.arrived(gauge.left(10_000_000, MONDAY), 1, MONDAY + SECOND)
    assert gauge.estimate.contention == MAX_CONTENTION
    quiet = Gauge()
    quiet.arrived(quiet.left(0, MONDAY), 0, MONDAY)
    assert quiet.estimate.contention == 1


def test_throughput_is_what_has_arrived() -> None:
    gauge = Gauge()
    for step in range(300):
        now = MONDAY + step * SECOND // 10
        gauge.arrived(gauge.left(100, now), 100, now)
    assert gauge.throughput == pytest.approx(1000, rel=0.03)


def test_a_rate_is_what_flows_and_fades_when_nothing_does() -> None:
    meter = RateMeter()
    for step in range(300):
        meter.count(100, MONDAY + step * SECOND // 10)
    assert meter.rate(MONDAY + 30 * SECOND) == pytest.approx(1000, rel=0.03)
    assert meter.rate(MONDAY + 90 * SECOND) == pytest.approx(0, abs=0.01)


def test_before_the_first_sample_a_link_is_as_declared() -> None:
    assert Estimate().applied(WIFI) == WIFI


def test_small_messages_that_arrive_as_they_are_sent_are_not_contended() -> None:
    estimate = converse(round_trip=20 * MILLISECOND, every=7 * SECOND, size=2)
    assert estimate.contention == pytest.approx(1, abs=0.01)


def test_what_leaves_once_more_is_not_measured() -> None:
    """It leaves twice and arrives once, so that a healthy link would look contended."""
    ledger = BudgetLedger[int](Budgets([], zone_name="UTC"))
    backup = Gauge()
    for number in range(40):
        now = MONDAY + number * SECOND
        choice = Choice(Action.SEND, (), link="mno", charge=Charge(1000, 1), receipt_by=now)
        for gauge in (Gauge(), backup, backup, backup):
            ledger.reserve(number, choice, queue="", now=now)
            ledger.left(number, now, gauge=gauge)
        ledger.acknowledged(number, now + SECOND // 2)
        ledger.ended(number, now)
    assert backup.estimate == Estimate()
