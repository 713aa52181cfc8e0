"""The random events of a run: what arrives, when the user looks, when the link is up.

Every concern draws from its own stream, seeded by its name and the run's seed alone. Another outage
share leaves arrivals and reads as they were, and no number depends on which process draws it.

The link alternates between up and down. Up-times are exponential, so that outages begin like a
Poisson process; the length of an outage is gamma-distributed with a deviation of its own, by
default half as much again as the mean: many short gaps and a few long ones. The means follow from
two numbers, the share of time without a link and the outages per day.

Reads of a day are drawn from a normal distribution and spread evenly over the hours that the user
is awake, 16 to 17 from about seven in the morning. The fraction that rounding leaves over counts on
the next day, so that also half a read a day comes out right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log
from random import Random
from typing import Final

from lasthop.clock import DAY, HOUR, Micros
from lasthop.decision.volume.inputs import Arrived, ContactDown, ContactUp, Input, RankChanged, Read
from lasthop.simulation.last_hop.chance import Normal, exponential, gamma
from lasthop.simulation.last_hop.parameters import Distribution, Parameters

YEAR: Micros = 365 * DAY
WAKES: Micros = 27 * HOUR // 4
"""The time of day at which the user gets up, on average."""

WAKES_DEVIATION: Micros = HOUR // 4
FALLEN = 1.0
"""How far below Threshold a fallen rank lies."""


ARRIVAL: Final = 0
FALL: Final = 1
LINK: Final = 2
LOOK: Final = 3
"""The kinds of moments; among moments of one time, the lower kind comes first."""

KIND: Final = 3
KIND_BITS: Final = 2
"""The number of low bits in which a moment holds its kind. The bits above are its time, so that
moments sort as plain numbers."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The events of one run. A year has tens of thousands, and none is an object of its own."""

    moments: list[int]
    """All moments in order: `time << KIND_BITS | kind`. The first arrival has the key 1; the first
    change of the link brings it up, the next takes it down."""
    end: Micros
    ranks: list[float]
    """Ranks of the arrivals, in the order of their keys."""
    expiries: list[Micros | None]
    falls: list[int]
    """Keys of the events whose ranks fall, in the order of the falls."""
    fallen: float
    """The rank of an event after its fall."""

    @property
    def arrivals(self) -> int:
        """How many events arrive in the run."""
        return len(self.ranks)

    def inputs(self) -> Iterator[tuple[Micros, int, Input]]:
        """Yield the moments one by one, with the input for a feed. What the device answers to a
        look or a contact depends on what it holds, and on what has been read."""
        key = fall = 0
        linked = False
        given: Input
        for moment in self.moments:
            kind = moment & KIND
            if kind == ARRIVAL:
                given = Arrived(key + 1, self.ranks[key], self.expiries[key])
                key += 1
            elif kind == FALL:
                given = RankChanged(self.falls[fall], self.fallen)
                fall += 1
            elif kind == LINK:
                linked = not linked
                given = ContactUp() if linked else ContactDown()
            else:
                given = Read(None)
            yield moment >> KIND_BITS, kind, given


def draw(parameters: Parameters) -> Trace:
    """Draw all events of a run."""
    end = round(parameters.years * YEAR)
    arrivals = _arrivals(parameters, end)
    falls = _falls(parameters, arrivals, end)
    moments = arrivals + [at << KIND_BITS | FALL for at, _ in falls]
    moments += _link(parameters, end)
    moments += _looks(parameters, end)
    moments.sort()
    rank = _stream(parameters, "ranks").random
    return Trace(
        moments,
        end,
        [rank() for _ in arrivals],
        _expiries(parameters, arrivals),
        [key for _, key in falls],
        parameters.threshold - FALLEN,
    )


def _stream(parameters: Parameters, concern: str) -> Random:
    return Random(f"last hop/{parameters.seed}/{concern}")


def _arrivals(p: Parameters, end: Micros) -> list[int]:
    """Return the moments of all arrivals."""
    random = _stream(p, "arrivals").random
    rate = p.event_frequency / DAY
    moments: list[int] = []
    at = exponential(random) / rate
    while at < end:
        moments.append(int(at) << KIND_BITS | ARRIVAL)
        at += -log(1.0 - random()) / rate  # As `exponential`, but without a call per event.
    return moments


def _expiries(p: Parameters, arrivals: list[int]) -> list[Micros | None]:
    if p.expiration is None:
        return [None] * len(arrivals)
    portion, lengths = _stream(p, "expiring").random, _stream(p, "lifetimes")
    random, distribution = lengths.random, p.expiration_distribution
    share, mean = p.expiring_portion, p.expiration * HOUR
    expiries: list[Micros | None] = []
    for moment in arrivals:
        at = moment >> KIND_BITS
        if portion() >= share:
            expiries.append(None)
        elif distribution is Distribution.EXPONENTIAL:
            expiries.append(at + 1 + int(-log(1.0 - random()) * mean))
        elif distribution is Distribution.UNIFORM:
            expiries.append(at + 1 + int(random() * 2 * mean))
        else:
            expiries.append(at + 1 + int(max(0.0, lengths.gauss(mean, mean / 4))))
    return expiries


def _falls(p: Parameters, arrivals: list[int], end: Micros) -> list[tuple[Micros, int]]:
    """Return when ranks fall, with the keys of their events."""
    falls: list[tuple[Micros, int]] = []
    if not p.rank_drop:
        return falls
    random = _stream(p, "falls").random
    for key, moment in enumerate(arrivals, start=1):
        fallen, delay = random() < p.rank_drop, exponential(random)
        when = (moment >> KIND_BITS) + int(delay * p.rank_drop_delay * HOUR)
        if fallen and when < end:
            falls.append((when, key))
    falls.sort()
    return falls


def _link(p: Parameters, end: Micros) -> list[int]:
    """Return the moments at which the link changes: up at the first, down at the second, and so
    on."""
    if p.outage >= 1.0:
        return []
    changes: list[int] = [LINK]
    if p.outage <= 0.0:
        return changes
    stream = _stream(p, "link")
    random = stream.random
    cycle = DAY / p.outage_frequency
    up, down = cycle * (1.0 - p.outage), cycle * p.outage
    spread = p.outage_deviation**2
    at = exponential(random) * up
    while at < end:
        changes.append(int(at) << KIND_BITS | LINK)
        at += down * (gamma(stream, 1.0 / spread, spread) if spread else 1.0)
        changes.append(int(at) << KIND_BITS | LINK)
        at += exponential(random) * up
    return changes


def _looks(p: Parameters, end: Micros) -> list[int]:
    """Return the moments at which the user looks."""
    random = _stream(p, "reads").random
    normal = Normal(random)
    deviation = p.user_deviation * p.user_frequency
    left_over = 0.0
    moments: list[int] = []
    for midnight in range(0, end, DAY):
        wakes = midnight + WAKES + normal.draw(0.0, WAKES_DEVIATION)
        awake = 16 * HOUR + HOUR * random()
        wanted = left_over + max(0.0, normal.draw(p.user_frequency, deviation))
        reads = floor(wanted)
        left_over = wanted - reads
        for at in sorted([random() for _ in range(reads)]):
            look = int(wakes + at * awake)
            if look < end:
                moments.append(look << KIND_BITS | LOOK)
    return moments
