"""What different policies mean for a whole fleet: waste, loss and heartbeats on the same days.

Loss is counted against the on-line policy, device by device: messages that the owner would have
read under it, and did not read here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from lasthop.clock import DAY
from lasthop.simulation.fleet.rehearse import OVERHEAD, FleetDevice
from lasthop.simulation.fleet.world import BEGINS, person

BEST = "on-line"

COUNTED = ("forwarded", "wasted", "read_online", "lost")
WEIGHED = ("bytes", "rank", "rank_online")


@dataclass(slots=True)
class FleetResult:
    """The sums for one policy: messages forwarded, wasted and lost, pings and lost connections."""

    forwarded: int = 0
    wasted: int = 0
    read_online: int = 0
    lost: int = 0
    pings: int = 0
    deaths: int = 0
    bytes: int = 0
    """Bytes of the forwarded messages, with what the protocol adds."""
    rank: float = 0.0
    """The ranks of the messages that were read, added up."""
    rank_online: float = 0.0
    """The same under the on-line policy."""
    by_day: dict[int, list[int]] = field(default_factory=dict)
    """Messages forwarded, wasted, read under the on-line policy, and lost, by the day of their
    arrival."""

    @property
    def waste(self) -> float:
        return self.wasted / self.forwarded if self.forwarded else 0.0

    @property
    def loss(self) -> float:
        return self.lost / self.read_online if self.read_online else 0.0

    def add(self, other: FleetResult) -> None:
        """Add the result of another device."""
        for name in (*COUNTED, "pings", "deaths", *WEIGHED):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for day, counts in other.by_day.items():
            mine = self.by_day.setdefault(day, [0, 0, 0, 0])
            self.by_day[day] = [a + b for a, b in zip(mine, counts, strict=True)]


def result_of(device: FleetDevice, best: FleetDevice, *, since_day: int = 0) -> FleetResult:
    """Compare a simulated device with the same device under the on-line policy."""
    since = BEGINS + since_day * DAY
    result = FleetResult(pings=device.pings, deaths=device.deaths)
    for key, at in device.arrived.items():
        if at < since:
            continue
        sent, read, online = key in device.forwarded, key in device.read, key in best.read
        message = device.published[key]
        result.bytes += sent * (message.size + OVERHEAD)
        result.rank += read * message.rank
        result.rank_online += online * message.rank
        counts = [sent, sent and not read, online, online and not read]
        mine = result.by_day.setdefault((at - BEGINS) // DAY, [0, 0, 0, 0])
        result.by_day[(at - BEGINS) // DAY] = [a + b for a, b in zip(mine, counts, strict=True)]
    totals = [sum(column) for column in zip(*result.by_day.values(), strict=True)] or [0] * 4
    result.forwarded, result.wasted, result.read_online, result.lost = totals
    return result


def compare(
    policies: Sequence[str],
    *,
    devices: int,
    days: int,
    seed: int = 0,
    processes: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, FleetResult]:
    """Simulate every device once under each of these policies; return the sums by policy."""
    totals = {policy: FleetResult() for policy in policies}
    work = [(seed, number, days, tuple(policies)) for number in range(devices)]
    if processes == 1:
        _gather(totals, map(_live_through, work), progress)
        return totals
    context = get_context("forkserver" if sys.platform != "win32" else "spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        _gather(totals, pool.map(_live_through, work, chunksize=10), progress)
    return totals


def _live_through(work: tuple[int, int, int, tuple[str, ...]]) -> dict[str, FleetResult]:
    seed, number, days, policies = work
    lived = {}
    for policy in dict.fromkeys((BEST, *policies)):
        lived[policy] = FleetDevice(seed, person(seed, number), days, policy=policy, told=None)
        lived[policy].live(write=False)
    return {policy: result_of(lived[policy], lived[BEST]) for policy in policies}


def _gather(
    totals: dict[str, FleetResult],
    results: Iterable[dict[str, FleetResult]],
    progress: Callable[[int], None],
) -> None:
    for done, result in enumerate(results, 1):
        for policy, total in totals.items():
            total.add(result[policy])
        progress(done)
