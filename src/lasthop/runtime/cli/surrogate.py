"""`lasthop surrogate`: how the surrogates of apps are, and loading them anew."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lasthop.runtime.cli.client import RestClient, segment
from lasthop.runtime.cli.options import (
    DEFAULT_URL,
    Json,
    Token,
    Url,
    described,
    new_commands,
)
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.cli.tables import table
from lasthop.runtime.failure import Failure

commands = new_commands()

AppName = Annotated[str, typer.Argument(metavar="APP", help="The app that it acts for.")]


@commands.command(
    "list", help=described("List the surrogates of a gateway.", "lasthop surrogate list")
)
def list_(url: Url = DEFAULT_URL, token: Token = None, as_json: Json = False) -> None:
    with RestClient(url, token=token) as client:
        found = client.call("GET", "/v1/surrogates")["surrogates"]
    if as_json:
        say_json(found)
        return
    rows = [[row["app"], row["place"], row["state"], row["waiting"]] for row in found]
    table(["app", "class", "state", "waiting"], rows)


@commands.command(
    help=described(
        "Show how an app's surrogate is. Exit code 1 when it cannot be loaded.",
        "lasthop surrogate status shop",
    )
)
def status(
    app: AppName, url: Url = DEFAULT_URL, token: Token = None, as_json: Json = False
) -> None:
    with RestClient(url, token=token) as client:
        found = client.call("GET", f"/v1/surrogates/{segment(app)}")
    _show(found, as_json)
    if found["state"] == "broken":
        raise Failure(f"the surrogate of {app} cannot be loaded: {found['reason']}")


@commands.command(
    help=described(
        "Load an app's surrogate anew. New code takes over between two messages; when it cannot be"
        " loaded the old one stays.",
        "lasthop surrogate reload shop",
    )
)
def reload(
    app: AppName, url: Url = DEFAULT_URL, token: Token = None, as_json: Json = False
) -> None:
    with RestClient(url, token=token) as client:
        found = client.call("POST", f"/v1/surrogates/{segment(app)}/reload")
    if as_json:
        say_json(found)
    else:
        say(f"the surrogate of {app} was loaded anew from {found['place']}")


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(found)
        return
    rows = [[name.replace("_", " "), value] for name, value in found.items() if name != "outcomes"]
    rows += [[name, count] for name, count in found["outcomes"].items()]
    table(["", ""], rows)
