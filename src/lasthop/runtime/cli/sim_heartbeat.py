"""`lasthop sim heartbeat`: simulate how devices learn the longest heartbeat interval that a network
allows, and how much that saves."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lasthop.clock import SECOND
from lasthop.runtime.cli.options import Json, described
from lasthop.runtime.cli.output import say_json
from lasthop.simulation.heartbeat import FIXED, HeartbeatRow, measure, networks

STEPS = ((300, 120), (120, 900), (1800, 30), (30, 1800))


def join(commands: typer.Typer) -> None:
    """Add the `heartbeat` command to its group."""
    commands.command(
        "heartbeat",
        help=described(
            "Simulate on virtual time how a device learns the longest heartbeat that address"
            " translators of several timeouts allow, also when the timeouts change after two"
            " days. Compares it with what fixed intervals cost on the last day: pings, and"
            " connections that were found dead.",
            "lasthop sim heartbeat",
            "lasthop sim heartbeat --days 30 --known 250 --json",
        ),
    )(heartbeat)


def heartbeat(
    days: Annotated[int, typer.Option(min=3, max=3660, help="Number of virtual days.")] = 8,
    known: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="The longest heartbeat that other devices have found. [none]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    rows = [
        measure(name, translator, days=days, others=known) for name, translator in networks(STEPS)
    ]
    if as_json:
        fixed = [interval / SECOND for interval in FIXED]
        say_json({"days": days, "fixed": fixed, "networks": [asdict(row) for row in rows]})
    else:
        _report(rows)


def _report(rows: list[HeartbeatRow]) -> None:
    table = Table()
    table.add_column("forgotten after", no_wrap=True)
    for column in ("trials (failed)", "found", "of timeout", "lost"):
        table.add_column(column, justify="right")
    for column in ("pings/day", "ideal", *(f"fixed {i // SECOND} s (lost)" for i in FIXED)):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row.network,
            f"{row.trials} ({row.failures})",
            f"{row.interval:.0f} s",
            f"{row.share:.0%}",
            str(row.lost),
            str(row.pings),
            f"{row.ideal:.0f}",
            *(f"{pings}" + (f" ({lost})" if lost else "") for pings, lost in row.fixed),
        )
    Console(width=118, highlight=False).print(table)
