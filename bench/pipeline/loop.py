"""Tests learned policies: learned on the first days of the fleet, in force on the last.

Every device goes through the same world several times: under the policy of the log; under the
predictive policy with its defaults, which has learned nothing, from the first day or from the
switch on; from the switch on with the learned forwarding and the device's own heartbeat; then with
what the fleet knows of networks as well; and under the on-line policy, by which loss is measured.
Only messages that arrive after the switch count. Nothing is replayed here: all policies decide
live.

Learning chooses among policies, so that most of its gain over the log's policy may come from the
chosen policy itself: therefore the results include the same policy without learning. Messages save
heartbeats, so that heartbeats are compared under the same forwarding.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

import msgspec

from lasthop.decision.policies import Policy
from lasthop.pipeline.replay import decider
from lasthop.policy import Forwarding, PolicyIndex, decode
from lasthop.simulation.fleet.rehearse import APP, FleetDevice, FleetTopic
from lasthop.simulation.fleet.tally import FleetResult, result_of
from lasthop.simulation.fleet.world import person

UNTAUGHT = Forwarding(policy="predictive")
"""The policy that learning mostly chooses, with its defaults and without a memory."""


@dataclass(slots=True)
class Loop:
    """The results under the log's policy, under what was learned from it, and without learning."""

    devices: int
    days: int
    switch: int
    seed: int = 0
    live: FleetResult = field(default_factory=FleetResult)
    predictive: FleetResult = field(default_factory=FleetResult)
    """The predictive policy with its defaults, from the first day on."""
    untaught: FleetResult = field(default_factory=FleetResult)
    """The predictive policy from the switch on, when it knows nothing yet."""
    own: FleetResult = field(default_factory=FleetResult)
    """The learned forwarding, with the device's own heartbeat."""
    learned: FleetResult = field(default_factory=FleetResult)

    def results(self) -> dict[str, FleetResult]:
        """Return the results of all ways of deciding, by name."""
        return {name: getattr(self, name) for name in WAYS}

    def as_dict(self) -> dict[str, object]:
        """Return the results for JSON."""
        rates = {
            name: {"waste": r.waste, "loss": r.loss, "sum": r.waste + r.loss}
            for name, r in self.results().items()
        }
        return {**asdict(self), "rates": rates}


WAYS = {
    "live": "unified",
    "predictive": "predictive, from day 1",
    "untaught": "predictive, from the switch",
    "own": "learned, own heartbeat",
    "learned": "learned",
}
"""The label of each way of deciding, for people."""


def chosen(policies: PolicyIndex, device: str, topic: FleetTopic) -> tuple[Policy, str]:
    """Return the learned policy of a device's topic, and its terms as they are logged."""
    forwarding = policies.forwarding(APP, device, topic.name).forwarding
    policy = decider(forwarding, topic.subscription)
    tuning = {**topic.tuning, "price": forwarding.price}
    terms = {"policy": forwarding.policy, "tuning": tuning, "memory": forwarding.memory}
    return policy, msgspec.json.encode(terms).decode()


def untaught(policies: PolicyIndex, device: str, topic: FleetTopic) -> tuple[Policy, str]:
    """Return the predictive policy without anything learned, the same for every device."""
    policy = decider(UNTAUGHT, topic.subscription)
    terms = {"policy": UNTAUGHT.policy, "tuning": topic.tuning}
    return policy, msgspec.json.encode(terms).decode()


_policies: dict[Path, PolicyIndex] = {}


def _live_through(work: tuple[int, int, int, int, Path]) -> dict[str, FleetResult]:
    seed, number, days, switch, path = work
    if path not in _policies:
        _policies[path] = PolicyIndex(decode(path.read_bytes()))
    learned = _policies[path]
    who = person(seed, number)
    best = FleetDevice(seed, who, days, policy="on-line", told=None)
    ways = {
        name: FleetDevice(
            seed, who, days, policy="predictive" if name == "predictive" else "unified", told=None
        )
        for name in WAYS
    }
    ways["untaught"].switch(switch, learned, untaught, networks=False)
    ways["own"].switch(switch, learned, chosen, networks=False)
    ways["learned"].switch(switch, learned, chosen)
    for device in (best, *ways.values()):
        device.count_from(switch)
        device.live(write=False)
    return {name: result_of(device, best, since_day=switch) for name, device in ways.items()}


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
    """Run the fleet with the policies of a version's file from the day `switch` on."""
    loop = Loop(devices, days, switch, seed)
    results = devices_of(
        policies, devices=devices, days=days, switch=switch, seed=seed, processes=processes
    )
    _gather(loop, results, progress)
    return loop


def devices_of(
    policies: Path, *, devices: int, days: int, switch: int, seed: int, processes: int = 1
) -> Iterator[dict[str, FleetResult]]:
    """Yield the results of every device, by the way of deciding."""
    work = [(seed, number, days, switch, policies) for number in range(devices)]
    if processes == 1:
        yield from map(_live_through, work)
        return
    context = get_context("forkserver" if sys.platform != "win32" else "spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from pool.map(_live_through, work, chunksize=10)


def _gather(
    loop: Loop, results: Iterable[dict[str, FleetResult]], progress: Callable[[int], None]
) -> None:
    totals = loop.results()
    for done, result in enumerate(results, 1):
        for name, total in totals.items():
            total.add(result[name])
        progress(done)


def draw(loop: Loop, out: Path) -> None:
    """Draw waste and loss of each day after the switch."""
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    figure = Figure(figsize=(8, 3.4), dpi=110, layout="constrained")
    axes = figure.subplots()
    for name, result, colour in (
        ("unified", loop.live, "#d9822b"),
        ("predictive", loop.predictive, "#7a7a7a"),
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
    axes.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    figure.savefig(out)
