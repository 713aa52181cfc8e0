"""The simulator itself: what it draws, what it counts, and that nothing but parameters matters."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from lasthop.clock import DAY, HOUR
from lasthop.decision.policies import POLICIES
from lasthop.decision.volume.inputs import Arrived, ContactDown, RankChanged, Read
from lasthop.simulation.last_hop.drawing import can_draw, error_bars, write_csv, write_picture
from lasthop.simulation.last_hop.figures import FIGURES, FigureRow, measure
from lasthop.simulation.last_hop.parameters import Distribution, Parameters
from lasthop.simulation.last_hop.run import LastHopOutcome, run
from lasthop.simulation.last_hop.sweep import Work, mapper, sweep
from lasthop.simulation.last_hop.trace import LINK, Trace, draw

SHORT = Parameters(years=0.1, outage=0.5, expiration=12, max=4)


def kinds(trace: Trace, kind: type) -> list[int]:
    return [at for at, _, given in trace.inputs() if isinstance(given, kind)]


def downtime(trace: Trace) -> float:
    down, since, total = False, 0, 0
    for at, kind, given in trace.inputs():
        if kind == LINK:
            total += at - since if down else 0
            down, since = isinstance(given, ContactDown), at
    return total / since


def test_events_and_reads_come_as_often_as_asked_and_reads_while_awake() -> None:
    trace = draw(Parameters(event_frequency=50, user_frequency=0.7))
    assert len(kinds(trace, Arrived)) == trace.arrivals == pytest.approx(50 * 365, rel=0.03)
    reads = kinds(trace, Read)
    assert len(reads) == pytest.approx(0.7 * 365, rel=0.03)
    hours = [at % DAY / HOUR for at in reads]
    assert not [hour for hour in hours if 1 < hour < 5.5]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_the_link_is_down_for_its_share_as_often_as_asked(share: float) -> None:
    trace = draw(Parameters(outage=share, outage_frequency=8, years=3))
    assert downtime(trace) == pytest.approx(share, abs=0.03)
    assert len(kinds(trace, ContactDown)) == pytest.approx(3 * 365 * 8, rel=0.08)


@pytest.mark.parametrize(
    "distribution, deviation",
    [
        (Distribution.EXPONENTIAL, 1.0),
        (Distribution.UNIFORM, 3**-0.5),
        (Distribution.NORMAL, 0.25),
    ],
)
def test_lifetimes_have_their_mean_and_their_spread(
    distribution: Distribution, deviation: float
) -> None:
    p = Parameters(expiration=6, expiration_distribution=distribution, expiring_portion=0.5)
    events = [(at, e) for at, _, e in draw(p).inputs() if isinstance(e, Arrived)]
    lives = [(e.expires_at - at) / HOUR for at, e in events if e.expires_at is not None]
    assert len(lives) / len(events) == pytest.approx(0.5, abs=0.02)
    assert fmean(lives) == pytest.approx(6, rel=0.05)
    assert pstdev(lives) == pytest.approx(6 * deviation, rel=0.05)


def test_another_link_leaves_arrivals_and_reads_as_they_were() -> None:
    one, other = draw(SHORT), draw(replace(SHORT, outage=0.9, rank_drop=0.3))
    for kind in (Arrived, Read):
        assert [m for m in one.inputs() if isinstance(m[2], kind)] == [
            m for m in other.inputs() if isinstance(m[2], kind)
        ]
    assert not kinds(one, RankChanged)
    assert len(kinds(other, RankChanged)) == pytest.approx(0.3 * other.arrivals, rel=0.2)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_adds_up(name: str) -> None:
    o = run(replace(SHORT, policy=name, rank_drop=0.1, storage=20))
    assert o.waste == pytest.approx(o.wasted / max(1, o.forwarded))
    assert o.loss == pytest.approx(o.lost / o.read_online)
    assert o.forwarded - o.wasted == o.read_policy
    assert o.read_online - o.lost <= o.read_policy <= o.forwarded <= o.events


def test_the_extremes_have_no_loss_and_no_waste() -> None:
    assert run(replace(SHORT, policy="on-line")).loss == 0
    assert run(replace(SHORT, policy="on-demand")).waste == 0


def test_the_same_parameters_give_the_same_numbers_in_any_order() -> None:
    sets = [replace(SHORT, seed=seed, policy=name) for seed in (0, 1) for name in POLICIES]

    def backwards(work: Work, some: Sequence[Parameters]) -> Iterable[LastHopOutcome]:
        return reversed([work(one) for one in reversed(some)])

    assert sweep(sets, mapper=backwards) == sweep(sets)


def test_processes_give_the_same_numbers() -> None:
    sets = [replace(SHORT, years=0.02, seed=seed) for seed in range(4)]
    done: list[None] = []
    with mapper(2) as mapped:
        assert sweep(sets, mapper=mapped, progress=lambda: done.append(None)) == sweep(sets)
    assert len(done) == 4


@pytest.mark.parametrize("number", FIGURES)
def test_a_figure_is_written_with_its_error_bars(number: int, tmp_path: Path) -> None:
    figure = FIGURES[number]()
    figure = replace(figure, points=figure.points[:: max(1, len(figure.points) // 5)])
    rows = measure(figure, seeds=2, years=0.02)
    write_csv(rows, tmp_path / "figure.csv")
    with (tmp_path / "figure.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in read] == [row.mean for row in rows]
    assert {row["metric"] for row in read} == set(figure.metrics)
    assert {row["seeds"] for row in read} == {"2"}
    if can_draw():
        write_picture(figure, rows, tmp_path / "figure.png")
        assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "wrong", [{"policy": "none"}, {"outage": 2.0}, {"years": 0.0}, {"user_deviation": -1.0}]
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"policy|share|above|negative"):
        replace(SHORT, **wrong)  # type: ignore[arg-type]


def test_error_bars_stay_between_nothing_and_everything() -> None:
    """Few reads make shares of zero and one, which differ a lot."""
    means_and_deviations = [(0.5, 0.1), (0.33, 0.58), (0.9, 0.4), (0.0, 0.0), (1.0, 0.0)]
    points = [
        FigureRow(5, "a", 1.0, "loss", mean, off, 3, None) for mean, off in means_and_deviations
    ]
    below, above = error_bars(points)
    assert below == [0.1, 0.33, 0.4, 0.0, 0.0]
    assert above == pytest.approx([0.1, 0.58, 0.1, 0.0, 0.0])
