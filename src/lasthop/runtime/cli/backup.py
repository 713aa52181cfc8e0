"""`lasthop backup`: copy the store of a gateway to one file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from lasthop.runtime.cli.options import Directory, Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.store.sqlite import SqliteReader

commands = new_commands()


@commands.command(
    help=described(
        "Copy the store of a gateway to one file, whether the gateway runs or not.",
        "lasthop backup monday.db --data ./data",
    ),
)
def backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.")
    ],
    data: Directory = Path("lasthop-data"),
    as_json: Json = False,
) -> None:
    with closing(SqliteReader.beside(data)) as reader:
        reader.backup(file)
    size = file.stat().st_size
    if as_json:
        say_json({"file": str(file), "bytes": size})
    else:
        say(f"{file}: {size} bytes")
