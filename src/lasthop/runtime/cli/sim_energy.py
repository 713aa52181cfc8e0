"""`lasthop sim energy`: simulate how much of a device's battery messages use."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lasthop.clock import HOUR, SECOND
from lasthop.runtime.cli.options import Json, described
from lasthop.runtime.cli.output import say, say_json
from lasthop.simulation.odin.energy import Energy, energy, idle
from lasthop.simulation.odin.radio import BEARERS
from lasthop.simulation.odin.setting import Setting


class Network(StrEnum):
    """The kinds of network that the radio model knows."""

    WIFI = "wifi"
    UMTS = "3g"


def join(commands: typer.Typer) -> None:
    """Add the `energy` command to its group."""
    commands.command(
        "energy",
        help=described(
            "Simulate the energy that messages of 256 bytes to one device use in some hours of"
            " virtual time, through the real gateway, hop protocol and SDK, over a model of its"
            " radio. Shows joules, how long a battery lasts, and the efficiency index of the"
            " Odin paper, compared with emulated push services, which send no heartbeats.",
            "lasthop sim energy",
            "lasthop sim energy --bearer 3g --every 300 --hours 6 --json",
        ),
    )(spend)


def spend(
    bearer: Annotated[
        list[Network] | None,
        typer.Option(help="The network; may be repeated. [wifi, 3g]", show_choices=True),
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0.1, max=8784, help="Number of virtual hours.")
    ] = 24.0,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Seconds between two messages.")
    ] = 20.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random delays.")] = 0,
    as_json: Json = False,
) -> None:
    setting = Setting(length=round(hours * HOUR), every=round(every * SECOND))
    wanted = set(bearer or Network)
    rows = [
        row for kind in BEARERS if kind.name in wanted for row in energy(kind, setting, seed=seed)
    ]
    alone = {
        kind.name: idle(kind, setting.length, seed=seed) for kind in BEARERS if kind.name in wanted
    }
    if as_json:
        services = [asdict(row) for row in rows]
        say_json({"hours": hours, "every": every, "services": services, "heartbeats": alone})
        return
    _report(rows, hours)
    for name, joules in alone.items():
        say(f"{name}: without messages, the heartbeats of lasthop take {joules:.0f} J")
    say("The emulated services send no heartbeats.")


def _report(rows: list[Energy], hours: float) -> None:
    table = Table()
    for column in ("network", "service"):
        table.add_column(column, no_wrap=True)
    for column in (f"radio, {hours:g} h", "battery lasts", "of idle time", "index"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row.bearer,
            row.service,
            f"{row.radio_joules:.0f} J",
            f"{row.hours:.1f} h",
            f"{row.hours / row.idle_hours:.0%}",
            f"{row.index:.2f}",
        )
    Console(width=100, highlight=False).print(table)
