"""`lasthop doctor`: report what is missing on this machine, and how to install it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.doctor import FindingState, examine

commands = new_commands()

_MARKS = {FindingState.GOOD: "ok", FindingState.COULD_BE_BETTER: "--", FindingState.BROKEN: "NO"}


@commands.command(
    help=described(
        "Check the installation, and report what is missing and how to install it. The exit"
        " code is 1 if a gateway could not run properly.",
        "lasthop doctor",
        "lasthop doctor --config lasthop.toml --json",
    )
)
def doctor(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", envvar="LASTHOP_CONFIG", help="The gateway's file of settings."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The gateway's data directory.")
    ] = None,
    as_json: Json = False,
) -> None:
    well = True
    for finding in examine(config, environment=os.environ, data=data):
        well = well and finding.state is not FindingState.BROKEN
        if as_json:
            say_json(msgspec.to_builtins(finding))
            continue
        say(f"{_MARKS[finding.state]}  {finding.name:18} {finding.found}")
        if finding.remedy:
            say(f"{'':23}{finding.remedy}")
    if not well:
        raise typer.Exit(1)
