"""Runs the measurements of `lasthop bench exchange`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.exchange.drawing import draw
from bench.exchange.networks import NETWORKS, Network
from bench.exchange.protocols import PROTOCOLS, run as exchange
from bench.exchange.results import PARTS, Point
from bench.exchange.roundtrips import Result, Spread, measure as measure_round_trips
from lasthop.clock import SECOND

CALLS = (50, 100, 150, 200, 250)


class Report(NamedTuple):
    points: list[Point]
    round_trips: list[Result]


def run(
    *,
    calls: Sequence[int] = CALLS,
    seeds: int = 10,
    folder: Path | None = None,
    as_json: bool = False,
) -> int:
    """Measure, draw the figures if there is a folder, and print; return the exit status."""
    report = measure(calls, seeds, quiet=as_json or not sys.stderr.isatty())
    files = draw(report.points, folder) if folder is not None else []
    if as_json:
        sys.stdout.write(msgspec.json.encode(report._asdict()).decode() + "\n")
        return 0
    show(report, Console(width=110, highlight=False))
    for file in files:
        sys.stdout.write(f"{file}\n")
    return 0


def measure(calls: Sequence[int], seeds: int, *, quiet: bool = True) -> Report:
    jobs = [(network, protocol, n) for network in NETWORKS for protocol in PROTOCOLS for n in calls]
    console = Console(stderr=True)
    points = [
        _point(network, protocol, n, seeds)
        for network, protocol, n in track(jobs, "exchange", console=console, disable=quiet)
    ]
    return Report(points, [measure_round_trips(network) for network in NETWORKS])


def _point(network: Network, protocol: str, calls: int, seeds: int) -> Point:
    runs = [exchange(protocol, network, calls, seed) for seed in range(seeds)]
    seconds = [each.time / SECOND for each in runs]
    return Point(
        network.name,
        protocol,
        calls,
        mean(seconds),
        stdev(seconds) if seeds > 1 else 0.0,
        mean(each.application for each in runs),
        mean(each.protocol for each in runs),
        mean(each.transport for each in runs),
        mean(each.packets for each in runs),
    )


def show(report: Report, console: Console) -> None:
    """Print the report for people."""
    most = max(point.calls for point in report.points)
    table = Table(title=f"{most} calls on virtual time", title_justify="left")
    for heading in ("network", "protocol", "seconds", "ms a call"):
        table.add_column(heading, justify="left" if heading in {"network", "protocol"} else "right")
    for heading in (*PARTS, "packets"):
        table.add_column(f"{heading} B" if heading in PARTS else heading, justify="right")
    for point in report.points:
        if point.calls != most:
            continue
        table.add_row(
            point.network,
            point.protocol,
            f"{point.seconds:.3f} ± {point.deviation:.3f}",
            f"{1000 * point.seconds / point.calls:.2f}",
            *(f"{getattr(point, part):,.0f}" for part in PARTS),
            f"{point.packets:,.0f}",
        )
    console.print(table)
    trips = Table(title="Round trips in milliseconds (table 7.10)", title_justify="left")
    for heading in ("network", "side", "estimate", "true", "error", "stop watch"):
        trips.add_column(heading, justify="left" if heading in {"network", "side"} else "right")
    for result in report.round_trips:
        for name, side in (("client", result.client), ("server", result.server)):
            watch = _shown(result.watch) if name == "client" else ""
            shown = (_shown(each) for each in side)
            trips.add_row(result.network, name, *shown, watch)
    console.print(trips)


def _shown(spread: Spread) -> str:
    return f"{spread.mean:.2f} ± {spread.deviation:.2f}"
