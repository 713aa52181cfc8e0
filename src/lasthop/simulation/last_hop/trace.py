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

from dataclasses import dataclass
from math import floor
from operator import itemgetter
from random import Random
from typing import Final, TypeAlias

from lasthop.clock import DAY, HOUR, Micros
from lasthop.decision.volume.inputs import Arrived, ContactDown, ContactUp, RankChanged, Read
from lasthop.simulation.last_hop.chance import exponential, gamma
from lasthop.simulation.last_hop.parameters import Distribution, Parameters

YEAR: Micros = 365 * DAY
WAKES: Micros = 27 * HOUR // 4
"""When the user gets up, on average."""

WAKES_DEVIATION: Micros = HOUR // 4
FALLEN = 1.0
"""How far below Threshold a fallen rank lies."""


ARRIVAL: Final = 0
FALL: Final = 1
LINK: Final = 2
LOOK: Final = 3
"""What a moment is; of what happens at once, the lower comes first."""

LOOKS: Final = Read(None)
UP: Final = ContactUp()
DOWN: Final = ContactDown()
"""What the device makes of the first two depends on what it holds, and on what has been read."""

Moment: TypeAlias = tuple[Micros, int, Arrived | RankChanged | ContactUp | ContactDown | Read]
"""When, what it is, and what the feed would be told."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One run's events in order."""

    moments: list[Moment]
    end: Micros
    events: list[Arrived]
    """Those that arrive, in the order of their keys, which begin with 1."""

    @property
    def arrivals(self) -> int:
        """How many events arrive."""
        return len(self.events)


def draw(parameters: Parameters) -> Trace:
    """Everything that will happen."""
    end = round(parameters.years * YEAR)
    moments = _arrivals(parameters, end)
    events = [given for _, _, given in moments if isinstance(given, Arrived)]
    moments += _falls(parameters, moments, end)
    moments += _link(parameters, end)
    moments += _looks(parameters, end)
    moments.sort(key=itemgetter(0))  # Stable: kinds are in their order already.
    return Trace(moments, end, events)


def _stream(parameters: Parameters, concern: str) -> Random:
    return Random(f"last hop/{parameters.seed}/{concern}")


def _arrivals(p: Parameters, end: Micros) -> list[Moment]:
    moment, rank = _stream(p, "arrivals").random, _stream(p, "ranks").random
    lifetimes = None if p.expiration is None else Lifetimes(p, p.expiration)
    rate = p.event_frequency / DAY
    moments: list[Moment] = []
    key = 0
    at = exponential(moment) / rate
    while at < end:
        key += 1
        now = int(at)
        lifetime = None if lifetimes is None else lifetimes.draw()
        expires_at = None if lifetime is None else now + lifetime
        moments.append((now, ARRIVAL, Arrived(key, rank(), expires_at)))
        at += exponential(moment) / rate
    return moments


class Lifetimes:
    """How long events live."""

    def __init__(self, p: Parameters, hours: float) -> None:
        self._portion, self._lengths = _stream(p, "expiring"), _stream(p, "lifetimes")
        self._share = p.expiring_portion
        self._distribution = p.expiration_distribution
        self._mean = hours * HOUR

    def draw(self) -> Micros | None:
        """The next one's; `None`: for ever."""
        lengths, mean = self._lengths, self._mean
        if self._portion.random() >= self._share:
            return None
        if self._distribution is Distribution.EXPONENTIAL:
            return 1 + int(exponential(lengths.random) * mean)
        if self._distribution is Distribution.UNIFORM:
            return 1 + int(lengths.random() * 2 * mean)
        return 1 + int(max(0.0, lengths.gauss(mean, mean / 4)))


def _falls(p: Parameters, arrivals: list[Moment], end: Micros) -> list[Moment]:
    moments: list[Moment] = []
    if not p.rank_drop:
        return moments
    random = _stream(p, "falls").random
    for at, _, arrived in arrivals:
        assert isinstance(arrived, Arrived)
        falls, delay = random() < p.rank_drop, exponential(random)
        when = at + int(delay * p.rank_drop_delay * HOUR)
        if falls and when < end:
            moments.append((when, FALL, RankChanged(arrived.key, p.threshold - FALLEN)))
    return moments


def _link(p: Parameters, end: Micros) -> list[Moment]:
    if p.outage >= 1.0:
        return []
    moments: list[Moment] = [(0, LINK, UP)]
    if p.outage <= 0.0:
        return moments
    stream = _stream(p, "link")
    random = stream.random
    cycle = DAY / p.outage_frequency
    up, down = cycle * (1.0 - p.outage), cycle * p.outage
    spread = p.outage_deviation**2
    at = exponential(random) * up
    while at < end:
        moments.append((int(at), LINK, DOWN))
        at += down * (gamma(stream, 1.0 / spread, spread) if spread else 1.0)
        moments.append((int(at), LINK, UP))
        at += exponential(random) * up
    return moments


def _looks(p: Parameters, end: Micros) -> list[Moment]:
    stream = _stream(p, "reads")
    left_over = 0.0
    moments: list[Moment] = []
    for midnight in range(0, end, DAY):
        wakes = midnight + WAKES + stream.gauss(0.0, WAKES_DEVIATION)
        awake = stream.uniform(16 * HOUR, 17 * HOUR)
        wanted = left_over + max(
            0.0, stream.gauss(p.user_frequency, p.user_deviation * p.user_frequency)
        )
        reads = floor(wanted)
        left_over = wanted - reads
        for at in sorted([stream.random() for _ in range(reads)]):
            moment = int(wakes + at * awake)
            if moment < end:
                moments.append((moment, LOOK, LOOKS))
    return moments
