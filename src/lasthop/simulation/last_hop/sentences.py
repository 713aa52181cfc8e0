"""Sentences about figures as measurements: what is measured for a sentence, and when it holds.

The paper leaves some things open
(how lifetimes are distributed, how long outages are, what a loss is a share of, when a life is
judged, whether a look without a link is answered later); a `Reading` settles them in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

from lasthop.simulation.last_hop.parameters import (
    Denominator,
    Distribution,
    LifeJudged,
    Parameters,
)
from lasthop.simulation.last_hop.run import LastHopOutcome
from lasthop.simulation.last_hop.sweep import Mapper, in_turn, sweep


class Measurement(NamedTuple):
    """One measurement: what it is called, in which world, and which metric is read off."""

    label: str
    metric: str
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence about a figure, with what is measured for it and when it holds."""

    figure: int
    text: str
    probes: tuple[Measurement, ...]
    holds: Callable[[Sequence[float]], bool]
    criterion: str
    """The criterion in words: the paper's own words are seldom numbers."""
    shown: tuple[int, ...] = ()
    """Which of the measurements are shown to people; empty: all."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to settle what the paper leaves open."""

    name: str
    says: str
    changes: Mapping[str, Any]

    def of(self, parameters: Parameters) -> Parameters:
        """Return the parameters under this reading; only expiration policies judge lives."""
        changes = dict(self.changes)
        if parameters.policy != "expiration":
            changes.pop("life_judged", None)
        return replace(parameters, **changes)


OURS = Reading(
    "ours",
    "exponential lives, 16 outages a day, loss of what is read on-line, life judged at forwarding,"
    " a look without a link is not answered",
    {},
)
READINGS: tuple[Reading, ...] = (
    OURS,
    Reading("uniform", "lives uniform", {"expiration_distribution": Distribution.UNIFORM}),
    Reading("normal", "lives normal", {"expiration_distribution": Distribution.NORMAL}),
    Reading("daily-outage", "one outage a day", {"outage_frequency": 1.0}),
    Reading("rare-outage", "an outage every four days", {"outage_frequency": 0.25}),
    Reading("of-events", "loss as a share of all events", {"loss_of": Denominator.EVENTS}),
    Reading("at-arrival", "life judged at arrival", {"life_judged": LifeJudged.ARRIVAL}),
    Reading(
        "looks-wait", "a look without a link is answered when it is back", {"reads_wait": True}
    ),
    Reading(
        "looks-wait-rare",
        "the same, with an outage every four days",
        {"reads_wait": True, "outage_frequency": 0.25},
    ),
    Reading(
        "looks-wait-normal",
        "the same, with 16 outages a day and normal lives",
        {"reads_wait": True, "expiration_distribution": Distribution.NORMAL},
    ),
)
"""What is swept; everything that a reading does not name is as in ours."""


class Measured(NamedTuple):
    """A sentence under a reading: the values of its measurements, and whether it holds."""

    sentence: Sentence
    reading: Reading
    values: tuple[float, ...]
    holds: bool


def measure_sentences(
    readings: Sequence[Reading] = READINGS,
    *,
    sentences: Sequence[Sentence],
    seeds: int,
    years: float,
    mapper: Mapper = in_turn,
    progress: Callable[[], None] = lambda: None,
) -> list[Measured]:
    """Measure sentences under readings: means over the seeds 0, 1, ...; each run is made once."""
    pairs = [(reading, sentence) for reading in readings for sentence in sentences]
    sets = dict.fromkeys(runs(pairs, seeds=seeds, years=years))
    outcomes = dict(zip(sets, sweep(list(sets), mapper=mapper, progress=progress), strict=True))
    return [
        _measured(reading, sentence, outcomes, seeds=seeds, years=years)
        for reading, sentence in pairs
    ]


def runs(
    pairs: Iterable[tuple[Reading, Sentence]], *, seeds: int, years: float
) -> Iterable[Parameters]:
    """Yield the parameters of all runs, those of one world beside one another."""
    worlds: dict[Parameters, dict[Parameters, None]] = {}
    for reading, sentence in pairs:
        for probe in sentence.probes:
            for seed in range(seeds):
                made = _made(reading, probe, seed, years)
                worlds.setdefault(made.on_line(), {})[made] = None
    for made_in_world in worlds.values():
        yield from made_in_world


def _made(reading: Reading, probe: Measurement, seed: int, years: float) -> Parameters:
    return replace(reading.of(probe.parameters), seed=seed, years=years)


def _measured(
    reading: Reading,
    sentence: Sentence,
    outcomes: Mapping[Parameters, LastHopOutcome],
    *,
    seeds: int,
    years: float,
) -> Measured:
    values = tuple(
        fmean(
            getattr(outcomes[_made(reading, probe, seed, years)], probe.metric)
            for seed in range(seeds)
        )
        for probe in sentence.probes
    )
    return Measured(sentence, reading, values, sentence.holds(values))
