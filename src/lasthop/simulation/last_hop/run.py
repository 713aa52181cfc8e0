"""One run: the same year twice, under the on-line policy and under the candidate.

Waste is what was forwarded and never read; loss is what the on-line policy got read and the
candidate did not. A run ends at its last moment, without grace: what lies unread on the device then
was forwarded in vain, and what only the on-line policy's user has read by then is lost. That is how
the closed form of figure 1 counts, since events that do not expire could be read for ever.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Protocol

from lasthop.clock import Micros
from lasthop.decision.policies import POLICIES
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import Forward, Rerank, Retract, Show
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import Arrived, ContactDown, Input, Woken
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.trace import LinkUp, Trace, UserLooks, draw

WOKEN = Woken()


@dataclass(frozen=True, slots=True)
class Outcome:
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


class Scenario:
    """A gateway's feed and a device's queue, joined by the link of a trace."""

    def __init__(self, parameters: Parameters) -> None:
        policy = POLICIES[parameters.policy](parameters.tuning())
        self._feed = Feed(parameters.subscription(), policy)
        self._device = DeviceQueue(max_per_read=parameters.max)
        self._max = parameters.max
        self._events: dict[int, Arrived] = {}
        self._linked = False
        self.read: set[int] = set()
        self.forwarded = 0

    def play(self, trace: Trace) -> None:
        """Live through it."""
        feed = self._feed
        events = self._events
        for now, _, given in trace.moments:
            while (wake := feed.next_wake()) is not None and wake <= now:
                self._take(WOKEN, wake)
            if isinstance(given, Arrived):
                events[given.key] = given
                self._take(given, now)
            elif isinstance(given, UserLooks):
                self._look(now)
            elif isinstance(given, LinkUp):
                self._linked = True
                self._take(self._device.contact(), now)
            else:
                self._linked = self._linked and not isinstance(given, ContactDown)
                self._take(given, now)

    def _look(self, now: Micros) -> None:
        if self._linked:
            self._take(self._device.ask(self._max, now), now)
        else:
            self.read.update(self._device.read_offline(self._max, now))

    def _take(self, given: Input, now: Micros) -> None:
        device = self._device
        for effect in self._feed.take(given, now):
            if isinstance(effect, Forward):
                event = self._events[effect.key]
                device.forward(effect, rank=event.rank, expires_at=event.expires_at)
                self.forwarded += 1
            elif isinstance(effect, Show):
                self.read.update(device.show(effect))
            elif isinstance(effect, Retract):
                device.retract(effect)
            elif isinstance(effect, Rerank):
                device.rerank(effect)


class Played(Protocol):
    """A scenario that has come to its end."""

    read: set[int]
    forwarded: int


def score(trace: Trace, *, best: Played, candidate: Played) -> Outcome:
    """Compare a policy with the best that can be done."""
    lost = len(best.read - candidate.read)
    wasted = candidate.forwarded - len(candidate.read)
    return Outcome(
        waste=wasted / candidate.forwarded if candidate.forwarded else 0.0,
        loss=lost / len(best.read) if best.read else 0.0,
        lost=lost,
        wasted=wasted,
        forwarded=candidate.forwarded,
        read_online=len(best.read),
        read_policy=len(candidate.read),
        events=trace.arrivals,
    )


@lru_cache(maxsize=1)
def _on_line(world: Parameters) -> tuple[Trace, Scenario]:
    """The best that can be done in a world. Sweeps over policies stay in one for a while."""
    trace = draw(world)
    scenario = Scenario(world)
    scenario.play(trace)
    return trace, scenario


def run(parameters: Parameters) -> Outcome:
    """Rehearse a policy against the on-line one, on the same events."""
    world = parameters.on_line()
    trace, best = _on_line(world)
    if parameters == world:
        return score(trace, best=best, candidate=best)
    candidate = Scenario(parameters)
    candidate.play(trace)
    return score(trace, best=best, candidate=candidate)
