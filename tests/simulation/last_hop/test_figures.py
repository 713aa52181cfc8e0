"""The figures of the paper by their numbers: closed form, valley, shapes that its text states."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from lasthop.simulation.last_hop.figures import FIGURES, HARDEST, DrawnFigure, measure
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.run import LastHopOutcome, run

QUARTER = 0.25
"""Of a year: enough for a shape."""


def losses(outcomes: list[LastHopOutcome]) -> list[float]:
    return [outcome.loss for outcome in outcomes]


def wastes(outcomes: list[LastHopOutcome]) -> list[float]:
    return [outcome.waste for outcome in outcomes]


def rises(values: list[float], *, slack: float = 0.0) -> bool:
    return all(after >= before - slack for before, after in pairwise(values))


def falls(values: list[float], *, slack: float = 0.0) -> bool:
    return rises([-value for value in values], slack=slack)


def check_closed_form(figure: DrawnFigure, *, years: float) -> None:
    for row in measure(figure, seeds=1, years=years):
        assert row.expected is not None
        assert row.mean == pytest.approx(row.expected, abs=0.01), (row.curve, row.x)


def test_figure_1_is_its_closed_form_within_a_point() -> None:
    figure = FIGURES[1]()
    check_closed_form(replace(figure, points=figure.points[::5]), years=2)


@pytest.mark.slow
def test_figure_1_is_its_closed_form_everywhere() -> None:
    check_closed_form(FIGURES[1](), years=2)


def test_figure_2_on_demand_loses_more_and_more_until_nobody_has_a_link() -> None:
    shares = (0.0, 0.3, 0.5, 0.7, 0.9, 0.99)
    loss: list[float] = []
    for reads in (2.0, 8.0):
        p = Parameters(policy="on-demand", user_frequency=reads, years=2 * QUARTER)
        loss = losses([run(replace(p, outage=share)) for share in shares])
        assert loss[0] == 0
        assert rises(loss, slack=0.01)
        assert 0.95 < loss[-1] < 1
        assert run(replace(p, outage=1.0)).loss == 0
    # Whoever could read twice as much as there is makes up for short outages, not for long ones.
    assert loss[1] < 0.01
    assert loss[3] > 0.2


def test_figure_2_has_the_same_shape_at_any_max_for_a_user_who_seldom_looks() -> None:
    for outage in (0.5, 0.9):
        p = Parameters(policy="on-demand", user_frequency=0.5, outage=outage)
        loss = losses([run(replace(p, max=limit)) for limit in (1, 64)])
        assert max(loss) - min(loss) < 0.1


@pytest.mark.parametrize("outage", [0.5, 0.9])
def test_figure_3_has_a_valley_between_16_and_64(outage: float) -> None:
    p = Parameters(policy="buffer", outage=outage)
    at = {limit: run(replace(p, prefetch_limit=limit)) for limit in (1, 16, 32, 64, 512, 8192)}
    for limit in (16, 32, 64):
        assert at[limit].waste < 0.012
        assert at[limit].loss < 0.01
    assert at[1].loss > 0.8 * outage
    assert at[1].waste < 0.01
    assert 0.05 < at[512].waste < 0.1
    assert at[8192].waste == pytest.approx(0.5, abs=0.01)


def test_rate_based_prefetching_also_keeps_both_to_a_few_points_but_buffers_do_better() -> None:
    p = Parameters(outage=0.9)
    rate = run(replace(p, policy="rate"))
    buffer = run(replace(p, policy="buffer", prefetch_limit=16))
    assert rate.waste < 0.05
    assert rate.loss < 0.05
    assert buffer.waste + buffer.loss < rate.waste + rate.loss


def test_figure_4_waste_disappears_for_events_that_outlive_the_time_between_reads() -> None:
    hours = (16 / 3600, 0.1, 1.0, 4.2, 17.0, 72.0)
    last: list[float] = [1.0] * len(hours)
    for reads in (1.0, 4.0, 32.0):
        p = Parameters(policy="on-line", max=None, user_frequency=reads, years=QUARTER)
        waste = wastes([run(replace(p, expiration=h)) for h in hours])
        assert waste[0] > 0.95
        assert falls(waste)
        assert all(now <= before for now, before in zip(waste, last, strict=True))
        last = waste
    assert last[-1] < 0.05


def test_figure_5_loss_peaks_where_events_live_as_long_as_the_user_stays_away() -> None:
    hours = (16 / 3600, 0.1, 1.0, 4.2, 17.0, 72.0)
    for reads in (2.0, 32.0):
        p = Parameters(policy="on-demand", max=None, user_frequency=reads, outage=0.95, years=0.5)
        outcomes = [run(replace(p, expiration=h)) for h in hours]
        assert outcomes[0].lost < 0.001 * outcomes[0].events
        loss = losses(outcomes)
        peak = max(loss)
        assert peak > 0.6
        assert peak in (loss[2], loss[3])
        assert falls(loss[3:])
        assert loss[-1] < peak - 0.1
        better_link = [run(replace(p, outage=0.5, expiration=h)).loss for h in hours[3:]]
        assert all(up < down for up, down in zip(better_link, loss[3:], strict=True))


def test_figure_6_waste_falls_to_zero_and_loss_climbs_to_that_of_no_prefetching() -> None:
    thresholds = (0.0, 1.0, 4.0, 8.0, 16.0, 64.0, 2048.0)
    for hours in (4.2, 68.0):
        p = replace(HARDEST, policy="expiration", expiration=hours, years=2 * QUARTER)
        outcomes = [run(replace(p, expiration_threshold=t)) for t in thresholds]
        assert falls(wastes(outcomes))
        assert rises(losses(outcomes))
        assert outcomes[0].loss == 0
        assert outcomes[-1].waste == 0
        assert outcomes[-1].loss == run(replace(p, policy="on-demand")).loss


def test_figure_6_has_no_good_threshold_for_short_lives_and_one_for_long_lives() -> None:
    p = replace(HARDEST, policy="expiration")
    for threshold in (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0):
        outcome = run(replace(p, expiration_threshold=threshold))
        assert max(outcome.waste, outcome.loss) > 0.3
    outcome = run(replace(p, expiration=136.8, expiration_threshold=8.0))
    assert outcome.waste < 0.03
    assert outcome.loss < 0.03


def test_the_unified_policy_finds_that_threshold_and_the_valley_by_itself() -> None:
    long_lived = run(replace(HARDEST, policy="unified", expiration=136.8))
    assert long_lived.waste < 0.03
    assert long_lived.loss < 0.03
    overflow = run(Parameters(policy="unified", outage=0.9))
    assert overflow.waste < 0.01
    assert overflow.loss < 0.01


def test_the_delay_stage_trades_a_little_loss_for_waste_where_ranks_fall() -> None:
    p = Parameters(outage=0.9, rank_drop=0.2)
    delayed = run(replace(p, policy="unified"))
    hasty = run(replace(p, policy="buffer", prefetch_limit=16))
    assert delayed.waste < hasty.waste / 2
    assert delayed.loss < hasty.loss + 0.01


def interpolate(curve: list[LastHopOutcome], waste: float) -> float:
    """Loss at that waste, on the line between the nearest points."""
    points = sorted((outcome.waste, outcome.loss) for outcome in curve)
    for (left, above), (right, below) in pairwise(points):
        if left <= waste <= right:
            return above + (below - above) * (waste - left) / (right - left)
    raise AssertionError(f"no points around {waste}")


@pytest.mark.parametrize("deviation", [0.1, 0.5])
def test_prediction_loses_less_than_any_threshold_at_equal_waste(deviation: float) -> None:
    p = replace(HARDEST, user_deviation=deviation)
    thresholds = [
        run(replace(p, policy="expiration", expiration_threshold=float(t)))
        for t in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24)
    ]
    for price in (0.5, 1.0, 2.0, 4.0, 8.0):
        outcome = run(replace(p, policy="predictive", price=price))
        assert outcome.loss < interpolate(thresholds, outcome.waste) - 0.03


def test_no_fixed_policy_is_better_than_prediction_in_both_respects() -> None:
    worlds = [
        Parameters(outage=0.9),
        Parameters(outage=0.9, expiration=24),
        replace(HARDEST, expiration=136.8),
    ]
    for world in (replace(world, years=0.5) for world in worlds):
        predicted = run(replace(world, policy="predictive"))
        fixed = [
            replace(world, policy="on-line"),
            replace(world, policy="on-demand"),
            *(replace(world, policy="buffer", prefetch_limit=n) for n in (4, 8, 16, 32, 64)),
            *(replace(world, policy="expiration", expiration_threshold=t) for t in (2, 4, 8, 16)),
        ]
        for other in map(run, fixed):
            dominates = other.waste <= predicted.waste and other.loss <= predicted.loss
            same = (other.waste, other.loss) == (predicted.waste, predicted.loss)
            assert not dominates or same
