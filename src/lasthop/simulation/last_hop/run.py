"""One run: the same year twice, under the on-line policy and under the candidate.

Waste is what was forwarded and never read; loss is what the on-line policy got read and the
candidate did not. A run ends at its last moment, without grace: what lies unread on the device then
was forwarded in vain, and what only the on-line policy's user has read by then is lost. That is how
the closed form of figure 1 counts, since events that do not expire could be read for ever.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Protocol

from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.scenario import Scenario
from lasthop.simulation.last_hop.trace import Trace, draw


@dataclass(frozen=True, slots=True)
class LastHopOutcome:
    """What a run shows."""

    waste: float
    loss: float
    lost: int
    wasted: int
    forwarded: int
    read_online: int
    read_policy: int
    events: int

    def as_dict(self) -> dict[str, float]:
        """For machines."""
        return asdict(self)


class Played(Protocol):
    """A scenario that has come to its end."""

    @property
    def read(self) -> set[int]: ...
    @property
    def forwarded(self) -> int: ...


def score(trace: Trace, *, best: Played, candidate: Played) -> LastHopOutcome:
    """Compare a policy with the best that can be done."""
    lost = len(best.read - candidate.read)
    wasted = candidate.forwarded - len(candidate.read)
    return LastHopOutcome(
        waste=wasted / candidate.forwarded if candidate.forwarded else 0.0,
        loss=lost / len(best.read) if best.read else 0.0,
        lost=lost,
        wasted=wasted,
        forwarded=candidate.forwarded,
        read_online=len(best.read),
        read_policy=len(candidate.read),
        events=trace.arrivals,
    )


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector of reference cycles: here are none, and it would go through all that
    waits again and again to find that out."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@lru_cache(maxsize=1)
def _on_line(world: Parameters) -> tuple[Trace, Scenario]:
    """The best that can be done in a world. Sweeps over policies stay in one for a while."""
    trace = draw(world)
    scenario = Scenario(world)
    scenario.play(trace)
    return trace, scenario


def run(parameters: Parameters) -> LastHopOutcome:
    """Rehearse a policy against the on-line one, on the same events."""
    world = parameters.on_line()
    with uncollected():
        trace, best = _on_line(world)
        if parameters == world:
            return score(trace, best=best, candidate=best)
        candidate = Scenario(parameters)
        candidate.play(trace)
        return score(trace, best=best, candidate=candidate)
