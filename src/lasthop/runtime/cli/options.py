"""Options that several commands share, and helpers that define commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

DEFAULT_URL = "http://127.0.0.1:8080"

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

Url: TypeAlias = Annotated[
    str, typer.Option("--url", envvar="LASTHOP_URL", help="The address of the gateway's HTTP port.")
]

Token: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="LASTHOP_TOKEN",
        help="Credential; not needed on an open gateway.",
    ),
]

App: TypeAlias = Annotated[
    str, typer.Option("--app", envvar="LASTHOP_APP", help="The app that the command is about.")
]

DEFAULT_APP = "default"

Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Work on this data directory instead of asking a gateway.",
        file_okay=False,
    ),
]

Directory: TypeAlias = Annotated[
    Path,
    typer.Option("--data", metavar="DIR", help="The gateway's data directory.", file_okay=False),
]


def new_commands(about: str | None = None) -> typer.Typer:
    """Return the object to which a module adds its commands; `about` is the help of a group."""
    return typer.Typer(
        help=about, add_completion=False, rich_markup_mode=None, no_args_is_help=about is not None
    )


def described(text: str, *examples: str) -> str:
    """Return a command's help text, with examples that keep their lines."""
    return "\n".join([text, "", "\b", "Examples:", *(f"  {example}" for example in examples)])
