"""Runs `lasthop bench last-hop`: virtual years per second of our simulator and of SimPy, in one
run.

Ours uses the engine that the gateway runs. Both process the same random events, twice (on-line and
with a policy), and must agree on what is wasted and lost.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from statistics import median

import msgspec
from rich.console import Console
from rich.table import Table

from bench.last_hop.plain import Plain, World
from lasthop.decision.volume import feed
from lasthop.simulation.last_hop.figures import HARDEST
from lasthop.simulation.last_hop.parameters import Parameters, micros
from lasthop.simulation.last_hop.run import LastHopOutcome, score, uncollected
from lasthop.simulation.last_hop.scenario import Scenario
from lasthop.simulation.last_hop.trace import draw

WORLDS = {
    "overflow (figure 3)": Parameters(policy="buffer", prefetch_limit=16, outage=0.5),
    "expiration (figure 6)": replace(HARDEST, policy="expiration", expiration_threshold=8),
}
AGREE = 0.005
"""How far waste and loss may differ: the models order simultaneous events differently."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Virtual years per second on one core, in one world: the median of the rounds."""

    world: str
    lasthop: float
    simpy: float
    ratio: float
    waste: float
    loss: float


def run(*, years: float = 1.0, rounds: int = 5, as_json: bool = False) -> int:
    """Measure and print; return the exit status."""
    try:
        speeds = [measure(name, world, years, rounds) for name, world in WORLDS.items()]
    except Disagreement as error:
        sys.stderr.write(f"lasthop bench: {error}\n")
        return 1
    if as_json:
        report = {
            "python": platform.python_version(),
            "compiled": compiled(),
            "years": years,
            "rounds": rounds,
            "worlds": [asdict(speed) for speed in speeds],
        }
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        show(speeds, Console(width=100, highlight=False))
    return 0


class Disagreement(Exception):
    """The two simulators did not simulate the same thing."""


def compiled() -> bool:
    """Whether the engine is the compiled one."""
    return not feed.__file__.endswith(".py")


def measure(name: str, world: Parameters, years: float, rounds: int) -> Speed:
    """Measure both simulators in turn, with the garbage collector off for both."""
    our_speeds, their_speeds, ratios = [], [], []
    ours_was = None
    for seed in range(rounds):
        p = replace(world, years=years, seed=seed)
        with uncollected():
            our_speed, ours_was = timed(ours, p)
            their_speed, theirs_was = timed(plain, p)
        for metric in ("waste", "loss"):
            apart = abs(getattr(ours_was, metric) - getattr(theirs_was, metric))
            if apart > AGREE:
                raise Disagreement(f"{name}, seed {seed}: {ours_was} is not {theirs_was}")
        our_speeds.append(our_speed)
        their_speeds.append(their_speed)
        ratios.append(our_speed / their_speed)
    assert ours_was is not None
    speeds = (median(our_speeds), median(their_speeds), median(ratios))
    return Speed(name, *speeds, ours_was.waste, ours_was.loss)


def timed(
    work: Callable[[Parameters], LastHopOutcome], parameters: Parameters
) -> tuple[float, LastHopOutcome]:
    began = time.process_time()
    outcome = work(parameters)
    return parameters.years / (time.process_time() - began), outcome


def ours(parameters: Parameters) -> LastHopOutcome:
    trace = draw(parameters)
    best, candidate = Scenario(parameters.on_line()), Scenario(parameters)
    best.play(trace)
    candidate.play(trace)
    return score(trace, best=best, candidate=candidate)


def plain(parameters: Parameters) -> LastHopOutcome:
    trace = draw(parameters)
    world = World.of(trace)
    hours = parameters.expiration_threshold
    best = Plain(world, most=parameters.max)
    candidate = Plain(
        world,
        most=parameters.max,
        limit=parameters.prefetch_limit,
        threshold=None if hours is None else micros(hours),
    )
    best.play()
    candidate.play()
    return score(trace, best=best, candidate=candidate)


def show(speeds: list[Speed], console: Console) -> None:
    """Print the speeds for people."""
    build = "the compiled build" if compiled() else "pure Python"
    table = Table(
        title=f"Virtual years a second on one core ({build}, {platform.python_version()})"
    )
    table.add_column("world")
    for column in ("lasthop", "SimPy", "ratio", "waste", "loss"):
        table.add_column(column, justify="right")
    for s in speeds:
        numbers = (f"{s.lasthop:.1f}", f"{s.simpy:.1f}", f"{s.ratio:.2f}")
        table.add_row(s.world, *numbers, f"{s.waste:.1%}", f"{s.loss:.1%}")
    console.print(table)
    console.print(f"Waste and loss of both agree within {AGREE:.1%}.")
