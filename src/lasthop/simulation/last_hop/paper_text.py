"""What the last-hop paper's text says about its figures 1 to 6, sentence by sentence.

The curves of the paper are lost, its sentences are not. Each sentence has measurements and a
criterion, so that a computer can say whether the sentence holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.sentences import Measurement, Sentence

ON_LINE = Parameters(policy="on-line")
ON_DEMAND = Parameters(policy="on-demand")
BUFFER = Parameters(policy="buffer", outage=0.9)
LIVES = Parameters(policy="on-line", max=None)
LOST = Parameters(policy="on-demand", max=None, outage=0.95)
THRESHOLDS = Parameters(policy="expiration", max=None, outage=0.9)

CUTS = (0.25, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 32.0, 64.0, 256.0)
"""Expiration thresholds in hours at which the curves of figure 6 are measured."""

SHOWN_WASTE = (0, 2, 3, 5, 8, 9)
SHOWN_LOSS = tuple(len(CUTS) + place for place in SHOWN_WASTE)
"""The points of a curve that are shown to people: waste comes first, then loss."""

SMALL, NEGLIGIBLE = 0.01, 0.05
"""The shares that the criteria of sentences call small and negligible."""

STRAIGHT = 1 / 3
"""A loss that grows in proportion to outages has at 50 % outage 56 % of what it has at 90 %; one
that grows exponentially has at most this share."""


def _probes(
    base: Parameters, name: str, values: Iterable[float], metric: str, **more: Any
) -> tuple[Measurement, ...]:
    """Return the measurements of a metric over values of one parameter."""
    changes: list[tuple[float, dict[str, Any]]] = [(value, {name: value}) for value in values]
    return tuple(
        Measurement(f"{metric}, {_said(name, value)}", metric, replace(base, **change, **more))
        for value, change in changes
    )


def _said(name: str, value: float) -> str:
    if name == "outage":
        return f"{value:.0%} outage"
    if name == "max":
        return f"Max {value:g}"
    if name == "prefetch_limit":
        return f"limit {value:g}"
    if name == "expiration":
        return f"lives {hours(value)}"
    if name == "expiration_threshold":
        return f"threshold {hours(value)}"
    return f"{value:g} reads a day"


def hours(value: float) -> str:
    """Return a time in hours as people say it."""
    if value < 1:
        return f"{value * 60:.3g} min"
    return f"{value:g} h" if value < 100 else f"{value / 24:.3g} days"


def _within(low: float, high: float) -> Callable[[Sequence[float]], bool]:
    return lambda values: all(low <= value <= high for value in values)


def _formula() -> Sentence:
    points = tuple(product((0.5, 1, 2, 4, 8), (1, 4, 16, 64)))
    probes = tuple(
        Measurement(
            f"waste, {reads:g} reads a day of {most:g}",
            "waste",
            replace(ON_LINE, user_frequency=reads, max=most),
        )
        for reads, most in points
    )
    closed = [max(0.0, 1 - reads * most / ON_LINE.event_frequency) for reads, most in points]
    return Sentence(
        1,
        "The shapes of these curves can be approximated very well by a simple formula",
        probes,
        lambda values: all(abs(v - c) <= 2 * SMALL for v, c in zip(values, closed, strict=True)),
        "20 points of the curves, each within two points of 1 - reads * Max / events",
        shown=(0, 5, 9, 10, 12),
    )


def _overflow() -> Iterable[Sentence]:
    yield Sentence(
        1,
        "a user that reads a maximum of 32 messages once a day will not cause any waste",
        _probes(ON_LINE, "max", (32,), "waste", user_frequency=1.0),
        _within(0, SMALL),
        "at most 1 %",
    )
    yield Sentence(
        1,
        "if Max is reduced to 4, then 88% of the forwarded messages are wasted",
        _probes(ON_LINE, "max", (4,), "waste", user_frequency=1.0),
        _within(0.87, 0.89),
        "87 to 89 %",
    )
    yield _formula()
    yield Sentence(
        2,
        "With pure on-demand forwarding the waste can be eliminated",
        _probes(ON_DEMAND, "outage", (0.5, 0.9), "waste"),
        _within(0, 0),
        "none",
    )
    yield Sentence(
        2,
        "the losses grow exponentially",
        tuple(
            Measurement(f"{p.label}, {reads:g} reads a day", p.metric, p.parameters)
            for reads in (2.0, 8.0)
            for p in _probes(
                ON_DEMAND, "outage", (0.3, 0.5, 0.7, 0.9), "loss", user_frequency=reads
            )
        ),
        lambda v: v[1] <= STRAIGHT * v[3] and v[5] <= STRAIGHT * v[7],
        "at 50 % outage at most a third of what it is at 90 %",
    )
    yield Sentence(
        2,
        "to the point just below 100%",
        _probes(ON_DEMAND, "outage", (0.99,), "loss"),
        _within(0.95, 0.9999),
        "at 99 % outage from 95 % to less than 100 %",
    )
    yield Sentence(
        2,
        "before dropping back to 0 at the point of no connectivity",
        _probes(ON_DEMAND, "outage", (1.0,), "loss"),
        _within(0, 0),
        "none",
    )
    yield Sentence(
        2,
        "the shape of the curves with low user frequency is much the same with Max anywhere"
        " between 1 and 64",
        tuple(
            Measurement(f"{p.label}, Max {most}", p.metric, replace(p.parameters, max=most))
            for most in (1, 64)
            for p in _probes(ON_DEMAND, "outage", (0.5, 0.9), "loss", user_frequency=0.5)
        ),
        lambda v: abs(v[0] - v[2]) <= 0.1 and abs(v[1] - v[3]) <= 0.1,
        "no more than 10 points apart",
    )


def _buffers() -> Iterable[Sentence]:
    yield Sentence(
        3,
        "As the limit increases from 1 to 16, the loss percentage drops down very close to 0",
        _probes(BUFFER, "prefetch_limit", (1, 4, 16), "loss"),
        lambda v: v[0] > v[1] > v[2] and v[2] <= SMALL,
        "falling, at 16 at most 1 %",
    )
    yield Sentence(
        3,
        "as the limit goes beyond 64, the waste percentage starts growing exponentially before"
        " leveling off at 50%",
        _probes(BUFFER, "prefetch_limit", (64, 128, 256, 8192), "waste"),
        lambda v: v[1] > 1.7 * v[0] and v[2] > 1.7 * v[1] and abs(v[3] - 0.5) <= SMALL,
        "from 64 to 256 about doubling with the limit, in the end within a point of 50 %",
    )
    yield Sentence(
        3,
        "Between 16 and 64, both waste and loss are below 1%",
        tuple(
            probe
            for metric in ("waste", "loss")
            for probe in _probes(BUFFER, "prefetch_limit", (16, 32, 64), metric)
        ),
        _within(0, SMALL),
        "below 1 %",
    )
    yield Sentence(
        3,
        "It is safe to set the prefetch limit to twice that amount",
        tuple(
            probe
            for metric in ("waste", "loss")
            for probe in _probes(replace(BUFFER, policy="unified"), "user_frequency", (2,), metric)
        ),
        _within(0, SMALL),
        "below 1 % with the unified policy, whose limit is that",
    )
    yield Sentence(
        3,
        "both approaches were good at reducing waste and loss to a few percentage points, but the"
        " buffer-based approach turned out to be more effective",
        tuple(
            Measurement(f"{metric}, {p.policy}", metric, p)
            for p in (replace(BUFFER, policy="rate"), replace(BUFFER, prefetch_limit=16))
            for metric in ("waste", "loss")
        ),
        lambda v: max(v) <= NEGLIGIBLE and v[2] + v[3] < v[0] + v[1],
        "at most 5 %, and less with buffers",
    )


def _expirations() -> Iterable[Sentence]:
    yield Sentence(
        4,
        "most short-lasting notifications typically expire before the user gets to them",
        _probes(LIVES, "expiration", (1 / 60, 0.25), "waste"),
        _within(0.9, 1),
        "at least 90 %",
    )
    yield Sentence(
        4,
        "when the user checks messages with frequency below the expiration time, waste disappears",
        tuple(
            Measurement(
                f"waste, {reads:g} reads a day, lives 72 h",
                "waste",
                replace(LIVES, expiration=72.0, user_frequency=reads),
            )
            for reads in (2.0, 8.0, 32.0)
        ),
        _within(0, NEGLIGIBLE),
        "at most 5 %",
    )
    yield Sentence(
        5,
        "When expiration time is short relative to user frequency, loss is negligible",
        _probes(LOST, "expiration", (1 / 60, 0.25), "loss"),
        _within(0, 2 * NEGLIGIBLE),
        "at most 10 %",
    )
    yield Sentence(
        5,
        "As the expiration time increases, so does the percentage of loss",
        _probes(LOST, "expiration", (1 / 60, 0.25, 1.0, 2.0), "loss"),
        lambda v: all(after >= before for before, after in pairwise(v)) and v[-1] > v[0],
        "rising up to 2 h",
    )
    yield Sentence(
        5,
        "the loss percentage starts dropping back down",
        _probes(LOST, "expiration", (4.2, 17.0, 36.0, 72.0), "loss"),
        lambda v: all(after < before for before, after in pairwise(v)),
        "falling from 4.2 h on",
    )
    yield Sentence(
        5,
        "4.2 hours (this is one of the top points in Figure 5)",
        _probes(LOST, "expiration", (1.0, 2.0, 4.2, 8.0, 17.0), "loss"),
        lambda v: v[2] >= 0.8 * max(v),
        "at least 80 % of the highest loss",
    )
    yield Sentence(
        5,
        "only at long expiration times - points at the right end of the scale and beyond - are both"
        " waste and loss sufficiently low",
        (
            *_probes(LOST, "expiration", (17.0, 72.0, 288.0), "loss"),
            *_probes(replace(LIVES, outage=0.95), "expiration", (17.0, 72.0, 288.0), "waste"),
        ),
        lambda v: max(v[0], v[3]) > 2 * NEGLIGIBLE and max(v[2], v[5]) <= 2 * NEGLIGIBLE,
        "both at most 10 % at 12 days, not at 17 h",
    )
    yield Sentence(
        5,
        "with better network availability the height of these curves is lower",
        _probes(replace(LOST, expiration=4.2), "outage", (0.5, 0.8, 0.95), "loss"),
        lambda v: v[0] < v[1] < v[2],
        "rising with the time without a link",
    )


def _curve(life: float) -> tuple[Measurement, ...]:
    """Return the points of a curve of figure 6: waste at all thresholds, then loss."""
    return tuple(
        probe
        for metric in ("waste", "loss")
        for probe in _probes(
            replace(THRESHOLDS, expiration=life), "expiration_threshold", CUTS, metric
        )
    )


def _best(values: Sequence[float]) -> float:
    """Return the least that the worse of waste and loss can be along a curve."""
    half = len(values) // 2
    return min(max(pair) for pair in zip(values[:half], values[half:], strict=True))


def _sharp(values: Sequence[float]) -> bool:
    waste = values[: len(CUTS)]
    high = [cut for cut, value in zip(CUTS, waste, strict=True) if value >= 0.8 * waste[0]]
    low = [cut for cut, value in zip(CUTS, waste, strict=True) if value <= SMALL]
    return waste[0] >= 0.5 and bool(low) and low[0] <= 4 * high[-1]


def _thresholds() -> Iterable[Sentence]:
    near, far = _curve(4.2), _curve(136.8)
    yield Sentence(
        6,
        "the waste is high with short expiration thresholds but then sharply drops to zero",
        near,
        _sharp,
        "lives of 4.2 h: from 80 % of its height to 1 % within a factor of four",
        shown=SHOWN_WASTE,
    )
    yield Sentence(
        6,
        "the loss is nonexistent at first, but then climbs up to a high percentage and stabilizes"
        " there",
        near,
        lambda v: v[len(CUTS)] <= SMALL and v[-1] >= 0.25 and abs(v[-1] - v[-2]) <= SMALL,
        "lives of 4.2 h: at most 1 % at first, at last at least 25 % and level",
        shown=SHOWN_LOSS,
    )
    yield Sentence(
        6,
        "message expiration time is in the vicinity of the intervals between user reads [...] high"
        " levels of waste or loss no matter what threshold is chosen",
        near,
        lambda v: _best(v) >= 0.1,
        "lives of 4.2 h: at every threshold one of the two is at least 10 %",
        shown=(3, 5, len(CUTS) + 3, len(CUTS) + 5),
    )
    yield Sentence(
        6,
        "an order of magnitude higher than the time interval between reads, as in the case of the"
        " 5.7-day curve [...] there is a range of values where loss and waste are very small",
        far,
        lambda v: _best(v) <= SMALL,
        "lives of 5.7 days: both at most 1 % at some threshold",
        shown=(3, 5, 7, len(CUTS) + 3, len(CUTS) + 5, len(CUTS) + 7),
    )
    yield Sentence(
        6,
        "That range includes the value of the interval between reads",
        tuple(probe for probe in far if probe.parameters.expiration_threshold == 8.0),
        _within(0, SMALL),
        "both at most 1 % at 8 h",
    )


SENTENCES: tuple[Sentence, ...] = (
    *_overflow(),
    *_buffers(),
    *_expirations(),
    *_thresholds(),
)
"""All sentences of the paper's text that can be measured, in the order of the figures."""
