"""The random events of a run: what arrives, when the user looks, when the link is there.

Every concern draws from its own stream, seeded by its name and the run's seed alone. Another outage
share leaves arrivals and reads as they were, and no number depends on which process draws it.

The link alternates between up and down. Up-times are exponential, so that outages begin like a
Poisson process; the length of an outage is gamma-distributed with a deviation of its own, by
default half as much again as the mean: many short gaps and a few long ones. The means follow from
two numbers, the share of time without a link and the outages a day.

Reads of a day are drawn from a normal distribution and spread evenly over the hours that the user
is awake, 16 to 17 from about seven in the morning. What rounding leaves over counts tomorrow, so
that also half a read a day comes out right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor
from random import Random

from lasthop.clock import DAY, HOUR, Micros
from lasthop.decision.volume.inputs import Arrived, ContactDown, RankChanged
from lasthop.simulation.last_hop.parameters import Distribution, Parameters

YEAR: Micros = 365 * DAY
WAKES: Micros = 27 * HOUR // 4
"""When the user gets up, on average."""

WAKES_DEVIATION: Micros = HOUR // 4
FALLEN = 1.0
"""How far below Threshold a fallen rank lies."""


@dataclass(frozen=True, slots=True)
class UserLooks:
    """The user wants to see what there is."""


@dataclass(frozen=True, slots=True)
class LinkUp:
    """The link is back."""


LOOKS, UP, DOWN = UserLooks(), LinkUp(), ContactDown()

Moment = tuple[Micros, int, Arrived | RankChanged | UserLooks | LinkUp | ContactDown]
"""When, in which order of what happens at once, and what."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One run's events in order."""

    moments: list[Moment]
    end: Micros
    arrivals: int


def draw(parameters: Parameters) -> Trace:
    """Everything that will happen."""
    end = round(parameters.years * YEAR)
    arrivals = list(_arrivals(parameters, end))
    moments: list[Moment] = [
        *((at, 0, given) for at, given in arrivals),
        *((at, 1, given) for at, given in _falls(parameters, arrivals, end)),
        *((at, 2, given) for at, given in _link(parameters, end)),
        *((at, 3, LOOKS) for at in _looks(parameters, end)),
    ]
    moments.sort(key=_when)
    return Trace(moments, end, len(arrivals))


def _when(moment: Moment) -> tuple[Micros, int]:
    return moment[0], moment[1]


def _stream(parameters: Parameters, concern: str) -> Random:
    return Random(f"last hop/{parameters.seed}/{concern}")


def _arrivals(p: Parameters, end: Micros) -> Iterator[tuple[Micros, Arrived]]:
    moments, ranks = _stream(p, "arrivals"), _stream(p, "ranks")
    lifetimes = _lifetimes(p)
    rate = p.event_frequency / DAY
    key = 0
    at = moments.expovariate(rate)
    while at < end:
        key += 1
        now = int(at)
        lifetime = next(lifetimes)
        expires_at = None if lifetime is None else now + lifetime
        yield now, Arrived(key, ranks.random(), expires_at)
        at += moments.expovariate(rate)


def _lifetimes(p: Parameters) -> Iterator[Micros | None]:
    if p.expiration is None:
        while True:
            yield None
    portion, lengths = _stream(p, "expiring"), _stream(p, "lifetimes")
    mean = p.expiration * HOUR
    while True:
        if portion.random() >= p.expiring_portion:
            yield None
        elif p.expiration_distribution is Distribution.EXPONENTIAL:
            yield 1 + int(lengths.expovariate(1.0) * mean)
        elif p.expiration_distribution is Distribution.UNIFORM:
            yield 1 + int(lengths.random() * 2 * mean)
        else:
            yield 1 + int(max(0.0, lengths.gauss(mean, mean / 4)))


def _falls(
    p: Parameters, arrivals: list[tuple[Micros, Arrived]], end: Micros
) -> Iterator[tuple[Micros, RankChanged]]:
    if not p.rank_drop:
        return
    stream = _stream(p, "falls")
    for at, arrived in arrivals:
        falls, delay = stream.random() < p.rank_drop, stream.expovariate(1.0)
        when = at + int(delay * p.rank_drop_delay * HOUR)
        if falls and when < end:
            yield when, RankChanged(arrived.key, p.threshold - FALLEN)


def _link(p: Parameters, end: Micros) -> Iterator[tuple[Micros, LinkUp | ContactDown]]:
    if p.outage >= 1.0:
        return
    yield 0, UP
    if p.outage <= 0.0:
        return
    stream = _stream(p, "link")
    cycle = DAY / p.outage_frequency
    up, down = cycle * (1.0 - p.outage), cycle * p.outage
    spread = p.outage_deviation**2
    at = stream.expovariate(1.0) * up
    while at < end:
        yield int(at), DOWN
        at += down * (stream.gammavariate(1.0 / spread, spread) if spread else 1.0)
        yield int(at), UP
        at += stream.expovariate(1.0) * up


def _looks(p: Parameters, end: Micros) -> Iterator[Micros]:
    stream = _stream(p, "reads")
    left_over = 0.0
    for midnight in range(0, end, DAY):
        wakes = midnight + WAKES + stream.gauss(0.0, WAKES_DEVIATION)
        awake = stream.uniform(16 * HOUR, 17 * HOUR)
        wanted = left_over + max(
            0.0, stream.gauss(p.user_frequency, p.user_deviation * p.user_frequency)
        )
        reads = floor(wanted)
        left_over = wanted - reads
        for at in sorted(stream.random() for _ in range(reads)):
            moment = int(wakes + at * awake)
            if moment < end:
                yield moment
