"""The last-hop paper's model as one would write it on SimPy for the paper alone.

It has three processes, heaps for waiting events, and two policies with one fixed number each: at
most so many events on the device, or no event that expires sooner than that. Events that expire
have a timeout each.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Any

import simpy

from lasthop.simulation.last_hop.trace import ARRIVAL, KIND, KIND_BITS, LINK, LOOK, Trace

Process = Generator[simpy.Event, Any, None]


@dataclass(frozen=True, slots=True)
class World:
    """The random events of a run, in a list for every process."""

    arrivals: list[tuple[int, float, int, int | None]]
    links: list[int]
    reads: list[int]

    @classmethod
    def of(cls, trace: Trace) -> World:
        """Return the same random events as those of our simulator."""
        times: dict[int, list[int]] = {ARRIVAL: [], LINK: [], LOOK: []}
        for moment in trace.moments:
            times[moment & KIND].append(moment >> KIND_BITS)
        keys = range(1, trace.arrivals + 1)
        arrivals = list(zip(times[ARRIVAL], trace.ranks, keys, trace.expiries, strict=True))
        return cls(arrivals, times[LINK], times[LOOK])


class Plain:
    """The paper's model, and nothing else."""

    def __init__(
        self,
        world: World,
        *,
        most: int | None,
        limit: int | None = None,
        threshold: int | None = None,
    ) -> None:
        self._env = simpy.Environment()
        self._most = most
        self._limit = limit
        self._threshold = threshold
        self._up = False
        self._proxy: list[tuple[float, int]] = []
        self._held: list[tuple[float, int]] = []
        self._device: list[tuple[float, int]] = []
        self._on_device: set[int] = set()
        self._expires: dict[int, int] = {}
        self._gone: set[int] = set()
        self.read: set[int] = set()
        self.forwarded = 0
        self._env.process(self._arrivals(world.arrivals))
        self._env.process(self._link(world.links))
        self._env.process(self._reads(world.reads))

    def play(self) -> None:
        self._env.run()

    def _arrivals(self, arrivals: list[tuple[int, float, int, int | None]]) -> Process:
        for at, rank, key, expires_at in arrivals:
            yield self._env.timeout(at - self._env.now)
            heappush(self._proxy, (-rank, key))
            if expires_at is not None:
                self._expires[key] = expires_at
                self._env.process(self._expiry(key, expires_at - at))
            self._forward()

    def _expiry(self, key: int, lifetime: int) -> Process:
        yield self._env.timeout(lifetime)
        self._gone.add(key)
        del self._expires[key]
        self._on_device.discard(key)
        self._forward()

    def _link(self, changes: list[int]) -> Process:
        for at in changes:
            yield self._env.timeout(at - self._env.now)
            self._up = not self._up
            self._forward()

    def _reads(self, reads: list[int]) -> Process:
        for at in reads:
            yield self._env.timeout(at - self._env.now)
            count = 0
            while self._most is None or count < self._most:
                queues = [self._device, self._proxy, self._held] if self._up else [self._device]
                for queue in queues:
                    while queue and queue[0][1] in self._gone:
                        heappop(queue)
                queues = [queue for queue in queues if queue]
                if not queues:
                    break
                best = min(queues)
                key = heappop(best)[1]
                self.read.add(key)
                if best is self._device:
                    self._on_device.discard(key)
                else:
                    self.forwarded += 1
                count += 1
            self._forward()

    def _forward(self) -> None:
        while self._up and self._proxy:
            if self._limit is not None and len(self._on_device) >= self._limit:
                return
            rank, key = heappop(self._proxy)
            if key in self._gone:
                continue
            lifetime = self._expires.get(key, inf) - self._env.now
            if self._threshold is not None and lifetime < self._threshold:
                heappush(self._held, (rank, key))
                continue
            heappush(self._device, (rank, key))
            self._on_device.add(key)
            self.forwarded += 1
