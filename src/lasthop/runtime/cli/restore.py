"""`lasthop restore`: create a data directory from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lasthop.runtime.cli.options import Directory, Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.store import sqlite

commands = new_commands()


@commands.command(
    help=described(
        "Create a data directory from a backup. Devices notice the change, and no message is"
        " shown twice.",
        "lasthop restore monday.db --data ./data-again",
    ),
)
def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file that `lasthop backup` wrote.")
    ],
    data: Directory = Path("lasthop-data"),
    as_json: Json = False,
) -> None:
    incarnation = sqlite.restore(file, data)
    if as_json:
        say_json({"data": str(data), "incarnation": f"{incarnation:016x}"})
    else:
        say(f"{data} is ready; start it with: lasthop up --data {data}")
