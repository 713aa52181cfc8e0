"""The paper's figures 1 to 6 as sweeps, and a seventh of our own: the predictive policy against the
best that an expiration threshold can do.

The text of the paper gives the settings; curves and points in between are ours. A figure is drawn
from the means over several seeds, with their standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean, stdev

from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.run import LastHopOutcome
from lasthop.simulation.last_hop.sweep import Mapper, in_turn, sweep

SHORTEST, LONGEST = 16 / 3600, 72.0
"""Shortest and longest mean expiration in hours: 16 seconds and 3 days, the range of figures 4 and
5."""

EXPIRATIONS = tuple(SHORTEST * (LONGEST / SHORTEST) ** (step / 14) for step in range(15))
HARDEST = Parameters(max=None, outage=0.9, user_frequency=2, expiration=4.2)
"""The configuration for which the paper finds no good threshold."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of one curve: its position, and the parameters of its runs."""

    curve: str
    x: float
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class DrawnFigure:
    """A figure to be drawn: its title, axes, metrics and points."""

    number: int
    title: str
    x: str
    metrics: tuple[str, ...]
    points: tuple[Point, ...]
    log_x: bool = True
    log_y: bool = False

    def expected(self, point: Point) -> float | None:
        """Return the value of the closed form for a point; None if the figure has none."""
        if self.number != 1:
            return None
        p = point.parameters
        return max(0.0, 1.0 - p.user_frequency * (p.max or 0) / p.event_frequency)


@dataclass(frozen=True, slots=True)
class FigureRow:
    """The measurement of one point: the mean over the seeds, and the standard deviation."""

    figure: int
    curve: str
    x: float
    metric: str
    mean: float
    deviation: float
    seeds: int
    expected: float | None


def under(figure: DrawnFigure, change: Callable[[Parameters], Parameters]) -> DrawnFigure:
    """Return the figure with the parameters of every point changed in this way."""
    points = tuple(replace(p, parameters=change(p.parameters)) for p in figure.points)
    return replace(figure, points=points)


def measure(
    figure: DrawnFigure,
    *,
    seeds: int,
    years: float,
    mapper: Mapper = in_turn,
    progress: Callable[[], None] = lambda: None,
) -> list[FigureRow]:
    """Run the points of a figure with the seeds 0, 1, ... and return the means."""
    # Neighbouring points share their random events, which are then drawn once.
    sets = [
        replace(point.parameters, seed=seed, years=years)
        for seed, point in product(range(seeds), figure.points)
    ]
    outcomes = sweep(sets, mapper=mapper, progress=progress)
    return [
        _row(figure, point, metric, outcomes[place :: len(figure.points)])
        for place, point in enumerate(figure.points)
        for metric in figure.metrics
    ]


def _row(
    figure: DrawnFigure, point: Point, metric: str, outcomes: Sequence[LastHopOutcome]
) -> FigureRow:
    values = [getattr(outcome, metric) for outcome in outcomes]
    return FigureRow(
        figure.number,
        point.curve,
        point.x,
        metric,
        fmean(values),
        stdev(values) if len(values) > 1 else 0.0,
        len(values),
        figure.expected(point),
    )


def _overflow_waste() -> DrawnFigure:
    points = tuple(
        Point(f"{u:g} reads/day", m, Parameters(policy="on-line", max=m, user_frequency=u))
        for u, m in product((0.5, 1, 2, 4, 8), (1, 2, 4, 8, 16, 32, 64))
    )
    return DrawnFigure(1, "Waste due to overflow, on-line policy", "Max", ("waste",), points)


def _overflow_loss() -> DrawnFigure:
    shares = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
    points = tuple(
        Point(f"{u:g} reads/day", o, Parameters(policy="on-demand", outage=o, user_frequency=u))
        for u, o in product((0.5, 1, 2, 4, 8, 16), shares)
    )
    title = "Loss due to overflow, on-demand policy"
    return DrawnFigure(2, title, "time without a link", ("loss",), points, log_x=False)


def _buffer() -> DrawnFigure:
    points = tuple(
        Point(f"{o:.0%} outage", limit, Parameters(policy="buffer", outage=o, prefetch_limit=limit))
        for o, limit in product((0.1, 0.5, 0.9, 0.99), (2**power for power in range(14)))
    )
    title = "Loss and waste with buffer-based prefetching"
    return DrawnFigure(3, title, "prefetch limit", ("waste", "loss"), points)


def _expiring(number: int, title: str, metric: str, base: Parameters) -> DrawnFigure:
    points = tuple(
        Point(f"{u:g} reads/day", h, replace(base, user_frequency=u, expiration=h))
        for u, h in product((0.5, 1, 2, 4, 8, 16, 32), EXPIRATIONS)
    )
    return DrawnFigure(number, title, "mean expiration (hours)", (metric,), points)


def _thresholds() -> DrawnFigure:
    points = tuple(
        Point(
            f"{h:g} h",
            t,
            replace(HARDEST, policy="expiration", expiration=h, expiration_threshold=t),
        )
        for h, t in product((4.2, 17, 68, 136.8, 547), (2.0**power for power in range(-6, 10)))
    )
    title = "Waste and loss by expiration threshold, 90 % outage"
    x = "expiration threshold (hours)"
    return DrawnFigure(6, title, x, ("waste", "loss"), points, log_y=True)


def _prediction() -> DrawnFigure:
    thresholds = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24)
    prices = (0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8, 16, 32, 64)
    points = (
        *(
            Point("expiration", t, replace(HARDEST, policy="expiration", expiration_threshold=t))
            for t in thresholds
        ),
        *(Point("predictive", p, replace(HARDEST, policy="predictive", price=p)) for p in prices),
    )
    title = "Loss against waste, 90 % outage, 4.2 h, 2 reads a day"
    return DrawnFigure(7, title, "threshold (hours) or price", ("waste", "loss"), points)


FIGURES: dict[int, Callable[[], DrawnFigure]] = {
    1: _overflow_waste,
    2: _overflow_loss,
    3: _buffer,
    4: lambda: _expiring(
        4,
        "Waste due to expirations, on-line policy",
        "waste",
        Parameters(policy="on-line", max=None),
    ),
    5: lambda: _expiring(
        5,
        "Loss due to expirations, on-demand policy, 95 % outage",
        "loss",
        Parameters(policy="on-demand", max=None, outage=0.95),
    ),
    6: _thresholds,
    7: _prediction,
}
"""All figures by number, as functions that make them on demand."""
