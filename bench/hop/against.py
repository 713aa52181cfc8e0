"""Compares two checkouts of this repository: what a change did to the cost of a message.

Each checkout has its gateway and its device, started as users start them, with its own sources.
Rounds alternate, and so does which checkout goes first, so that a machine that slows down slows
both down. A ratio is taken within each round; the median of the ratios is the result.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.hop.comparison import Plan, Say
from bench.hop.gateway import gateway, ours
from bench.hop.pair import Pair, Run, paired
from bench.hop.processes import ROOT, Failed, heed_termination, sources
from bench.hop.results import Spread

WIDTH = 120
"""The least width of the table in columns: a path and its numbers must fit on one line."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one checkout, over all rounds."""

    checkout: str
    rate: Spread
    """Delivered messages per second."""
    gateway_cpu: Spread
    """Microseconds of CPU a message, in the gateway."""
    clients_cpu: Spread
    """Microseconds of CPU a message, in publisher and device together."""

    @classmethod
    def of(cls, checkout: Path, runs: Sequence[Run]) -> Side:
        """Summarise the runs of a checkout."""
        return cls(
            checkout=str(checkout),
            rate=Spread.of([run.rate for run in runs]),
            gateway_cpu=Spread.of([run.broker_cpu / run.count * 1e6 for run in runs]),
            clients_cpu=Spread.of(
                [(run.publisher_cpu + run.device_cpu) / run.count * 1e6 for run in runs]
            ),
        )


class Versus(msgspec.Struct, frozen=True, kw_only=True):
    """This checkout compared with another one."""

    here: Side
    there: Side
    gateway_cpu: Spread
    """Gateway CPU a message, here / there, round by round: less is better."""
    rate: Spread
    """Messages per second, here / there, round by round: more is better."""
    messages: int
    rounds: int
    load_before: float
    load_after: float


def run(
    *,
    against: Path,
    messages: int,
    rounds: int,
    directory: Path | None = None,
    as_json: bool = False,
) -> int:
    """Measure both checkouts and print the ratio; return the exit status."""
    said = Console(stderr=True, highlight=False)
    heed_termination()
    with tempfile.TemporaryDirectory(prefix="lasthop-bench-", dir=directory) as place:
        try:
            result = measure(
                (ROOT, against.resolve()),
                Plan(messages=messages, rounds=rounds),
                directory=Path(place),
                say=said.print,
            )
        except Failed as error:
            said.print(f"lasthop bench: {error}")
            return 1
    if as_json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    else:
        show(result, Console(width=max(WIDTH, said.width), highlight=False))
    return 0


def measure(checkouts: tuple[Path, Path], plan: Plan, *, directory: Path, say: Say) -> Versus:
    """Start both checkouts, run them in turn, and stop both."""
    load = os.getloadavg()[0]
    runs: tuple[list[Run], list[Run]] = ([], [])
    with ExitStack() as stack:
        pairs = [
            stack.enter_context(_started(checkout, directory / name))
            for checkout, name in zip(checkouts, ("here", "there"), strict=True)
        ]
        for pair in pairs:
            pair.run(plan.warm_up)
        for number in range(plan.rounds):
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                done = pairs[side].run(plan.messages)
                runs[side].append(done)
                say(
                    f"round {number + 1}: {checkouts[side]}: {done.rate:,.0f} messages/s, "
                    f"{done.broker_cpu / done.count * 1e6:.1f} µs of gateway CPU a message"
                )
    return versus(checkouts, *runs, load_before=load, load_after=os.getloadavg()[0])


def versus(
    checkouts: tuple[Path, Path],
    here: Sequence[Run],
    there: Sequence[Run],
    *,
    load_before: float = 0.0,
    load_after: float = 0.0,
) -> Versus:
    """Compare the runs of two checkouts, round by round."""
    rounds = list(zip(here, there, strict=True))
    return Versus(
        here=Side.of(checkouts[0], here),
        there=Side.of(checkouts[1], there),
        # The kernel counts CPU time in ticks: a very short run may show none, hence the least
        # value.
        gateway_cpu=Spread.of([a.broker_cpu / max(b.broker_cpu, 1e-9) for a, b in rounds]),
        rate=Spread.of([a.rate / b.rate for a, b in rounds]),
        messages=here[0].count,
        rounds=len(rounds),
        load_before=load_before,
        load_after=load_after,
    )


def show(result: Versus, console: Console) -> None:
    """Print the comparison for people."""
    table = Table(
        title=f"{result.rounds} rounds of {result.messages:,} messages, medians "
        f"(lowest to highest); load {result.load_before:.1f} before and "
        f"{result.load_after:.1f} after",
        title_justify="left",
    )
    table.add_column("checkout", overflow="fold")
    for heading in ("messages/s", "gateway CPU\nµs/message", "clients' CPU\nµs/message"):
        table.add_column(heading, justify="right")
    for side in (result.here, result.there):
        table.add_row(
            side.checkout,
            side.rate.text(),
            side.gateway_cpu.text(1),
            side.clients_cpu.text(1),
        )
    console.print(table)
    console.print(f"gateway CPU a message, here / there: {result.gateway_cpu.text(3)}")
    console.print(f"messages a second, here / there: {result.rate.text(3)}")


@contextmanager
def _started(checkout: Path, place: Path) -> Iterator[Pair]:
    """Start the gateway and the device of a checkout, durable on both ends, and a publisher."""
    place.mkdir()
    environment = {"PYTHONPATH": sources(checkout)}
    with gateway(place / "gateway", environment=environment) as running:
        system = ours(running, inbox=place)
        with paired(system, "bench", directory=place, checkout=checkout) as pair:
            yield pair
