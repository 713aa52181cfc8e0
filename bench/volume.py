"""Runs `lasthop bench volume`: our policies compared with what others do with an absent device.

The others are models of their documented rules (`lasthop.simulation.last_hop.zoo`), not the systems
themselves: a broker cannot be run for a virtual year. All of them see the same random events.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from statistics import fmean

import msgspec
from rich.console import Console
from rich.table import Table

from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.run import Played, score, uncollected
from lasthop.simulation.last_hop.scenario import Scenario
from lasthop.simulation.last_hop.trace import Trace, draw
from lasthop.simulation.last_hop.zoo import ZOO, Cage, SystemRule

WORLDS = {
    "commuter": (
        "32 events a day, 90 % of the time without a link, 16 gaps a day; 2 reads of 8",
        Parameters(outage=0.9),
    ),
    "news": (
        "32 events a day that live for 17 hours on average, links as for the commuter",
        Parameters(outage=0.9, expiration=17),
    ),
    "traveller": (
        "200 events a day, away for a week on average every second week; 2 reads of 8",
        Parameters(event_frequency=200, outage=0.5, outage_frequency=1 / 14),
    ),
}
OURS = ("on-line", "on-demand", "buffer", "unified", "predictive")


@dataclass(frozen=True, slots=True)
class Row:
    """One system in one world: means over the seeds."""

    world: str
    system: str
    waste: float
    loss: float
    rank_retained: float
    """The sum of the ranks that the user reads, as a share of that under the on-line policy."""
    forwarded: float


def run(*, years: float = 1.0, seeds: int = 3, as_json: bool = False) -> int:
    """Measure and print; return the exit status."""
    rows = [row for name in WORLDS for row in measure(name, years=years, seeds=seeds)]
    if as_json:
        worlds = {name: text for name, (text, _) in WORLDS.items()}
        report = {"years": years, "seeds": seeds, "worlds": worlds, "rows": list(map(asdict, rows))}
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        show(rows, Console(width=100, highlight=False))
    return 0


def measure(name: str, *, years: float, seeds: int) -> list[Row]:
    """Measure every system in one world, on the same events."""
    systems = compared_systems()
    seen: dict[str, list[tuple[float, float, float, int]]] = {system: [] for system in systems}
    for seed in range(seeds):
        world = replace(WORLDS[name][1], years=years, seed=seed)
        with uncollected():
            trace = draw(world)
            best = Scenario(world.on_line())
            best.play(trace)
            for system, play in systems.items():
                played = play(world, trace)
                outcome = score(trace, best=best, candidate=played)
                retained = ranks(trace, played) / ranks(trace, best)
                seen[system].append((outcome.waste, outcome.loss, retained, outcome.forwarded))
    return [
        Row(name, system, *(fmean(column) for column in zip(*values, strict=True)))
        for system, values in seen.items()
    ]


def compared_systems() -> dict[str, Callable[[Parameters, Trace], Played]]:
    """Return all systems by name, ours first."""
    everyone: dict[str, Callable[[Parameters, Trace], Played]] = {}
    for policy in OURS:
        everyone[f"lasthop, {policy}"] = _ours(policy)
    for system, rule in ZOO.items():
        everyone[system] = _theirs(rule)
    return everyone


def _ours(policy: str) -> Callable[[Parameters, Trace], Played]:
    def play(world: Parameters, trace: Trace) -> Played:
        limit = 16 if policy == "buffer" else None
        return _played(Scenario(replace(world, policy=policy, prefetch_limit=limit)), trace)

    return play


def _theirs(rule: Callable[[], SystemRule]) -> Callable[[Parameters, Trace], Played]:
    return lambda world, trace: _played(Cage(world, rule()), trace)


def _played(scenario: Scenario | Cage, trace: Trace) -> Played:
    scenario.play(trace)
    return scenario


def ranks(trace: Trace, played: Played) -> float:
    """Return the sum of the ranks that the user has read."""
    return sum(trace.ranks[key - 1] for key in played.read)


def show(rows: list[Row], console: Console) -> None:
    """Print a table for every world."""
    for name, (text, _) in WORLDS.items():
        table = Table(title=f"{name}: {text}", title_justify="left")
        table.add_column("system")
        for column in ("waste", "loss", "rank retained", "forwarded"):
            table.add_column(column, justify="right")
        for row in rows:
            if row.world == name:
                shares = (f"{share:.1%}" for share in (row.waste, row.loss, row.rank_retained))
                table.add_row(row.system, *shares, f"{row.forwarded:,.0f}")
        console.print(table)
    console.print("Others are models of their documented rules; none of them knows a rank.")
