"""One run: the same year twice, under the on-line policy and under the candidate.

Waste is what was forwarded and never read; loss is what the user read under the on-line policy and
not under the candidate. A run ends at its last moment, without grace: what is unread on the device
then was forwarded in vain, and what only the user of the on-line policy has read by then is lost.
That is how the closed form of figure 1 counts, since events that do not expire could be read for
ever.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Protocol

from lasthop.simulation.last_hop.parameters import Denominator, Parameters
from lasthop.simulation.last_hop.scenario import Scenario
from lasthop.simulation.last_hop.trace import Trace, draw


@dataclass(frozen=True, slots=True)
class LastHopOutcome:
    """The result of one run: waste and loss as shares, and the counts behind them."""

    waste: float
    loss: float
    lost: int
    wasted: int
    forwarded: int
    read_online: int
    read_policy: int
    events: int

    def as_dict(self) -> dict[str, float]:
        """Return the outcome as a dictionary, for JSON."""
        return asdict(self)


class Played(Protocol):
    """A scenario after it was played: which events were read, and how many were forwarded."""

    @property
    def read(self) -> set[int]: ...
    @property
    def forwarded(self) -> int: ...


def score(
    trace: Trace,
    *,
    best: Played,
    candidate: Played,
    loss_of: Denominator = Denominator.READ,
) -> LastHopOutcome:
    """Compare a candidate policy with the best possible one on the same trace."""
    whole = len(best.read) if loss_of is Denominator.READ else trace.arrivals
    lost = len(best.read - candidate.read)
    wasted = candidate.forwarded - len(candidate.read)
    return LastHopOutcome(
        waste=wasted / candidate.forwarded if candidate.forwarded else 0.0,
        loss=lost / whole if whole else 0.0,
        lost=lost,
        wasted=wasted,
        forwarded=candidate.forwarded,
        read_online=len(best.read),
        read_policy=len(candidate.read),
        events=trace.arrivals,
    )


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch the collector of reference cycles off: a run has no cycles, and the collector would
    look through all waiting events again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@lru_cache(maxsize=1)
def _on_line(world: Parameters) -> tuple[Trace, Scenario]:
    """Play a trace under the on-line policy. The last result is kept, since sweeps over policies
    use it again."""
    trace = draw(world)
    scenario = Scenario(world)
    scenario.play(trace)
    return trace, scenario


def run(parameters: Parameters) -> LastHopOutcome:
    """Rehearse a policy and the on-line policy on the same events, and compare them."""
    world = parameters.on_line()
    with uncollected():
        trace, best = _on_line(world)
        if parameters == world:
            return score(trace, best=best, candidate=best, loss_of=parameters.loss_of)
        candidate = Scenario(parameters)
        candidate.play(trace)
        return score(trace, best=best, candidate=candidate, loss_of=parameters.loss_of)
