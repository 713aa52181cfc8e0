"""The loop closed: policies learned on the first days of the fleet, in force on the last.

Every device lives through the same world four times: under the policy that the log has; from a day
on with the forwarding that was learned, and its own heartbeat; then with what the fleet knows of
networks as well; and under the on-line policy, by which loss is measured. Only messages that arrive
after the switch count. Nothing is replayed here: the learned policies decide live.

Messages save heartbeats, so that heartbeats are compared under the same forwarding.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

import msgspec

from lasthop.decision.policies import Policy
from lasthop.pipeline.replay import decider
from lasthop.policy import PolicyIndex, decode
from lasthop.simulation.fleet.rehearse import APP, FleetDevice, FleetTopic
from lasthop.simulation.fleet.tally import FleetResult, result_of
from lasthop.simulation.fleet.world import person


@dataclass(slots=True)
class Loop:
    """The policy of the log, and what was learned from it."""

    devices: int
    days: int
    switch: int
    live: FleetResult = field(default_factory=FleetResult)
    own: FleetResult = field(default_factory=FleetResult)
    """Learned forwarding, and the device's own heartbeat."""
    learned: FleetResult = field(default_factory=FleetResult)

    def as_dict(self) -> dict[str, object]:
        """For machines."""
        rates = {
            name: {"waste": r.waste, "loss": r.loss, "sum": r.waste + r.loss}
            for name, r in (("live", self.live), ("own", self.own), ("learned", self.learned))
        }
        return {**asdict(self), "rates": rates}


def chosen(policies: PolicyIndex, device: str, topic: FleetTopic) -> tuple[Policy, str]:
    """The learned policy of a device's topic, and its terms as they are logged."""
    forwarding = policies.forwarding(APP, device, topic.name).forwarding
    policy = decider(forwarding, topic.subscription)
    tuning = {**topic.tuning, "price": forwarding.price}
    terms = {"policy": forwarding.policy, "tuning": tuning, "memory": forwarding.memory}
    return policy, msgspec.json.encode(terms).decode()


_policies: dict[Path, PolicyIndex] = {}


def _live_through(
    work: tuple[int, int, int, int, Path],
) -> tuple[FleetResult, FleetResult, FleetResult]:
    seed, number, days, switch, path = work
    if path not in _policies:
        _policies[path] = PolicyIndex(decode(path.read_bytes()))
    who = person(seed, number)
    best = FleetDevice(seed, who, days, policy="on-line", told=None)
    live, own, learned = (
        FleetDevice(seed, who, days, policy="unified", told=None) for _ in range(3)
    )
    own.switch(switch, _policies[path], chosen, networks=False)
    learned.switch(switch, _policies[path], chosen)
    for device in (best, live, own, learned):
        device.count_from(switch)
        device.live(write=False)
    first, second, third = (
        result_of(device, best, since_day=switch) for device in (live, own, learned)
    )
    return first, second, third


def close(
    policies: Path,
    *,
    devices: int,
    days: int,
    switch: int,
    seed: int = 0,
    processes: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> Loop:
    """Run the fleet with a version's file from the day `switch` on."""
    loop = Loop(devices, days, switch)
    work = [(seed, number, days, switch, policies) for number in range(devices)]
    if processes == 1:
        _gather(loop, map(_live_through, work), progress)
        return loop
    context = get_context("forkserver" if sys.platform != "win32" else "spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        _gather(loop, pool.map(_live_through, work, chunksize=10), progress)
    return loop


def _gather(
    loop: Loop,
    results: Iterable[tuple[FleetResult, FleetResult, FleetResult]],
    progress: Callable[[int], None],
) -> None:
    for done, (live, own, learned) in enumerate(results, 1):
        loop.live.add(live)
        loop.own.add(own)
        loop.learned.add(learned)
        progress(done)


def draw(loop: Loop, out: Path) -> None:
    """Waste and loss of each day after the switch, both ways."""
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    figure = Figure(figsize=(8, 3.4), dpi=110, layout="constrained")
    axes = figure.subplots()
    for name, result, colour in (
        ("unified", loop.live, "#d9822b"),
        ("learned", loop.learned, "#2f6f9f"),
    ):
        days = sorted(result.by_day)
        for label, style, above, below in (("waste", "-", 1, 0), ("loss", "--", 3, 2)):
            counts = [result.by_day[day] for day in days]
            values = [100 * c[above] / max(1, c[below]) for c in counts]
            axes.plot([d + 1 for d in days], values, style, color=colour, label=f"{name}: {label}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("day")
    axes.set_ylabel("%")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    figure.savefig(out)
