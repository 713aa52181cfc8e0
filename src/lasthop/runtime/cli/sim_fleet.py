"""`lasthop sim fleet`: simulate many people's devices for some weeks, under one or more
policies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lasthop.decision.policies import POLICIES
from lasthop.errors import InvalidRequest
from lasthop.runtime.cli.options import Json, described
from lasthop.runtime.cli.output import say, say_json
from lasthop.simulation.fleet.log import write_log
from lasthop.simulation.fleet.tally import FleetResult, compare

SHOWN = ("on-line", "on-demand", "unified")


def join(commands: typer.Typer) -> None:
    """Add the `fleet` command to its group."""
    commands.command(
        "fleet",
        help=described(
            "Simulate some weeks of many devices with the real engine: people read at hours of"
            " their own and topics differ in how much is read, while networks come and go."
            " Shows what each policy sends in vain and what people miss, and what heartbeats"
            " cost. With --out the events are written as gateways write them, for the pipeline.",
            "lasthop sim fleet --devices 50 --days 7",
            "lasthop sim fleet --policy unified --out fleet-log",
        ),
    )(fleet)


def fleet(
    devices: Annotated[int, typer.Option(min=1, help="Number of devices.")] = 100,
    days: Annotated[int, typer.Option(min=1, max=3660, help="Number of virtual days.")] = 14,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A policy; may be repeated: {', '.join(POLICIES)}. [{', '.join(SHOWN)}]"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the fleet; another seed is another fleet.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the log of the fleet under the first policy to this folder."
        ),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 1,
    as_json: Json = False,
) -> None:
    chosen = list(dict.fromkeys(policy or SHOWN))
    for name in chosen:
        if name not in POLICIES:
            raise InvalidRequest("no such policy", policy=name, known=", ".join(POLICIES))
    if out is not None and out.exists() and any(out.iterdir()):
        raise InvalidRequest("the folder for the log is not empty", out=str(out))
    with Progress(
        TextColumn("devices"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        disable=as_json or not sys.stderr.isatty(),
        transient=True,
    ) as bar:
        task = bar.add_task("devices", total=devices)
        results = compare(
            chosen,
            devices=devices,
            days=days,
            seed=seed,
            processes=processes,
            progress=lambda done: bar.update(task, completed=done),
        )
    events = None
    if out is not None:
        first = chosen[0]
        events = write_log(
            out, devices=devices, days=days, seed=seed, policy=first, processes=processes
        )
    if as_json:
        rows = {name: _row(result) for name, result in results.items()}
        say_json({"devices": devices, "days": days, "seed": seed, "policies": rows, "log": events})
        return
    _report(results, devices * days)
    if events is not None:
        say(f"{events} events in {out}")


def _row(result: FleetResult) -> dict[str, float]:
    return {
        "waste": result.waste,
        "loss": result.loss,
        "forwarded": result.forwarded,
        "wasted": result.wasted,
        "read_online": result.read_online,
        "lost": result.lost,
        "pings": result.pings,
        "dead_connections": result.deaths,
    }


def _report(results: dict[str, FleetResult], device_days: int) -> None:
    table = Table()
    table.add_column("policy", no_wrap=True)
    for column in ("forwarded a day", "waste", "loss", "pings a day", "found dead a day"):
        table.add_column(column, justify="right")
    for name, result in results.items():
        table.add_row(
            name,
            f"{result.forwarded / device_days:.1f}",
            f"{result.waste:.1%}",
            f"{result.loss:.1%}",
            f"{result.pings / device_days:.1f}",
            f"{result.deaths / device_days:.2f}",
        )
    Console(width=100, highlight=False).print(table)
