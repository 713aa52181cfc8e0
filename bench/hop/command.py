"""Runs the measurements of `lasthop bench hop`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import msgspec
from rich.console import Console

from bench.hop import peers, report, systems
from bench.hop.comparison import Plan, Say, compare
from bench.hop.gateway import gateway, ours
from bench.hop.processes import Failed, heed_termination
from bench.hop.results import Report
from bench.hop.systems import System

WIDTH = 150
"""The least width of the report in columns: folded tables of numbers cannot be read."""

ALL = ("lasthop", "mosquitto", "rabbitmq")


def run(
    *,
    messages: int,
    rounds: int,
    rates: Sequence[float],
    seconds: float,
    idle: int,
    only: Sequence[str] = ALL,
    directory: Path | None = None,
    as_json: bool = False,
) -> int:
    """Run the comparison and print it; return the exit status."""
    plan = Plan(messages=messages, rounds=rounds, rates=rates, seconds=seconds, idle=idle)
    said = Console(stderr=True, highlight=False)
    if absent := [name for name in peers.missing() if name.partition("-")[0] in only]:
        said.print(f"lasthop bench: install these first: apt-get install {' '.join(absent)}")
        return 1
    if "rabbitmq" in only and find_spec("pika") is None:
        said.print("lasthop bench: install pika first: make test does")
        return 1
    heed_termination()
    with tempfile.TemporaryDirectory(prefix="lasthop-bench-", dir=directory) as place:
        try:
            result = measure(plan, only=only, directory=Path(place), say=said.print)
        except Failed as error:
            said.print(f"lasthop bench: {error}")
            return 1
    if as_json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    else:
        report.show(result, Console(width=max(WIDTH, said.width)))
    return 1 if any(row.failure for row in result.rows) else 0


def measure(plan: Plan, *, only: Sequence[str], directory: Path, say: Say) -> Report:
    """Start every broker, run the comparison, and stop every broker."""
    with ExitStack() as stack:
        compared: list[System] = []
        if "lasthop" in only:
            inboxes = directory / "inboxes"
            inboxes.mkdir()
            full = stack.enter_context(gateway(directory / "full"))
            relaxed = stack.enter_context(gateway(directory / "relaxed", durability="relaxed"))
            compared += [
                ours(full, inbox=inboxes),
                ours(full, inbox=None),
                ours(relaxed, inbox=inboxes),
                ours(relaxed, inbox=None),
                ours(full, inbox=inboxes, single=True),
            ]
        if "mosquitto" in only:
            broker = stack.enter_context(peers.mosquitto(directory / "mosquitto"))
            compared += [systems.mosquitto(broker, qos=1), systems.mosquitto(broker, qos=2)]
        if "rabbitmq" in only:
            broker = stack.enter_context(peers.rabbitmq(directory / "rabbitmq"))
            compared += [
                systems.rabbitmq(broker, kind=kind, library=library)
                for library in (False, True)
                for kind in ("classic", "quorum")
            ]
        return compare(compared, plan, directory=directory, say=say)
