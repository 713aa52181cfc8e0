"""`lasthop up`: run a gateway until it is told to stop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from lasthop.runtime import greeting, serve, settings
from lasthop.runtime.cli.options import Json, described, new_commands

commands = new_commands()


@commands.command(
    help=described(
        "Run a gateway until it is told to stop (Ctrl-C or SIGTERM).",
        "lasthop up --data ./data --http 127.0.0.1:8080 --tcp 127.0.0.1:7300",
    )
)
def up(
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Directory of the store and event log; created if missing."
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Address for publishers (HTTP); port 0 is any free port."
        ),
    ] = None,
    tcp: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Address for devices (TCP); port 0 is any free port."
        ),
    ] = None,
    beep: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address for devices that use BEEP.")
    ] = None,
    seqpacket: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Unix socket for devices on this machine."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", envvar="LASTHOP_CONFIG", help="File of settings in TOML."),
    ] = None,
    as_json: Json = False,
) -> None:
    options = {
        "data": data and str(data),
        "http.listen": http,
        "tcp.listen": tcp,
        "beep.listen": beep,
        "seqpacket.path": seqpacket,
    }
    chosen = settings.load(config, environment=os.environ, options=options)
    serve.run(chosen, announce=greeting.as_json if as_json else greeting.for_people)
