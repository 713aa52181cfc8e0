"""Virtual years a second: our rehearsal of the last hop beside the same model on SimPy.

    python -m bench.last_hop --years 3 --rounds 5

The SimPy model is what one would write for the paper alone: three processes, two heaps, and two
policies (on-line, and a buffer with a fixed limit) for events that do not expire. Ours runs the
engine that the gateway runs. Both live through the same random events, twice, and have to agree on
what is wasted and lost.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from heapq import heappop, heappush
from statistics import median
from typing import Any

import simpy

from lasthop.decision.volume.inputs import Arrived, ContactDown
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.run import Outcome, Scenario, score
from lasthop.simulation.last_hop.trace import Trace, UserLooks, draw

Process = Generator[simpy.Event, Any, None]


class Plain:
    """The paper's model, and nothing else."""

    def __init__(self, trace: Trace, *, limit: int | None, most: int) -> None:
        self._env = simpy.Environment()
        self._limit = limit
        self._most = most
        self._up = False
        self._proxy: list[tuple[float, int]] = []
        self._device: list[tuple[float, int]] = []
        self.read: set[int] = set()
        self.forwarded = 0
        moments = trace.moments
        arrivals = [(at, e.rank, e.key) for at, _, e in moments if isinstance(e, Arrived)]
        links = [(at, type(e) is not ContactDown) for at, order, e in moments if order == 2]
        reads = [at for at, _, e in moments if isinstance(e, UserLooks)]
        self._env.process(self._arrivals(arrivals))
        self._env.process(self._link(links))
        self._env.process(self._reads(reads))

    def play(self) -> None:
        self._env.run()

    def _arrivals(self, arrivals: list[tuple[int, float, int]]) -> Process:
        for at, rank, key in arrivals:
            yield self._env.timeout(at - self._env.now)
            heappush(self._proxy, (-rank, key))
            self._forward()

    def _link(self, changes: list[tuple[int, bool]]) -> Process:
        for at, up in changes:
            yield self._env.timeout(at - self._env.now)
            self._up = up
            self._forward()

    def _reads(self, reads: list[int]) -> Process:
        for at in reads:
            yield self._env.timeout(at - self._env.now)
            for _ in range(self._most):
                if (
                    self._up
                    and self._proxy
                    and (not self._device or self._proxy[0] < self._device[0])
                ):
                    self.read.add(heappop(self._proxy)[1])
                    self.forwarded += 1
                elif self._device:
                    self.read.add(heappop(self._device)[1])
            self._forward()

    def _forward(self) -> None:
        while self._up and self._proxy and (self._limit is None or len(self._device) < self._limit):
            heappush(self._device, heappop(self._proxy))
            self.forwarded += 1


def ours(parameters: Parameters) -> Outcome:
    trace = draw(parameters)
    best, candidate = Scenario(parameters.on_line()), Scenario(parameters)
    best.play(trace)
    candidate.play(trace)
    return score(trace, best=best, candidate=candidate)


def plain(parameters: Parameters) -> Outcome:
    assert parameters.max is not None
    trace = draw(parameters)
    best = Plain(trace, limit=None, most=parameters.max)
    candidate = Plain(trace, limit=parameters.prefetch_limit, most=parameters.max)
    best.play()
    candidate.play()
    return score(trace, best=best, candidate=candidate)


def timed(work: Callable[[Parameters], Outcome], parameters: Parameters) -> tuple[float, Outcome]:
    began = time.process_time()
    outcome = work(parameters)
    return parameters.years / (time.process_time() - began), outcome


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--years", type=float, default=1.0)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--outage", type=float, default=0.5)
    chosen = options.parse_args()
    parameters = Parameters(
        policy="buffer", prefetch_limit=16, outage=chosen.outage, years=chosen.years
    )
    speeds: dict[str, list[float]] = {"lasthop": [], "SimPy": []}
    for seed in range(chosen.rounds):
        world = replace(parameters, seed=seed)
        our_speed, our_outcome = timed(ours, world)
        their_speed, their_outcome = timed(plain, world)
        speeds["lasthop"].append(our_speed)
        speeds["SimPy"].append(their_speed)
        if abs(our_outcome.loss - their_outcome.loss) > 0.005:
            raise SystemExit(f"seed {seed}: {our_outcome} is not {their_outcome}")
    for name, values in speeds.items():
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(f"{name:8} {median(values):6.1f} virtual years a second on one core ({spread})")
    ratio = median(speeds["lasthop"]) / median(speeds["SimPy"])
    print(f"lasthop / SimPy {ratio:.2f}; the same waste and loss in {chosen.rounds} rounds")


if __name__ == "__main__":
    main()
