"""`lasthop config`: print all settings with their explanations."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from lasthop.runtime import settings
from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say_json

commands = new_commands()


@commands.command(
    help=described(
        "Print every setting with its explanation and its present value.",
        "lasthop config > lasthop.toml",
        "LASTHOP_HTTP_LISTEN=0.0.0.0:80 lasthop config --config lasthop.toml",
    )
)
def config(
    file: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", envvar="LASTHOP_CONFIG", help="File of settings in TOML."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    chosen = settings.load(file, environment=os.environ)
    if as_json:
        say_json(settings.values(chosen))
    else:
        print(settings.render(chosen), end="")
