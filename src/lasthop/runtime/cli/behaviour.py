"""`lasthop behaviour`: how messages of an app behave."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lasthop.runtime.cli.client import RestClient, segment
from lasthop.runtime.cli.options import (
    DEFAULT_APP,
    DEFAULT_URL,
    App,
    Json,
    Token,
    Url,
    described,
    new_commands,
)
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.units import Size

commands = new_commands("How messages of an app behave: show, set, clear.")


def _path(app: str) -> str:
    return f"/v1/apps/{segment(app)}/behaviour"


def _tell(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(found)
    elif not found:
        say("as for any app")
    else:
        say("\n".join(f"{name}: {value}" for name, value in found.items()))


@commands.command(help=described("What holds for messages of the app.", "lasthop behaviour show"))
def show(
    url: Url = DEFAULT_URL, token: Token = None, app: App = DEFAULT_APP, as_json: Json = False
) -> None:
    with RestClient(url, token=token, app=app) as client:
        _tell(client.call("GET", _path(app or "")), as_json)


@commands.command(
    "set",
    help=described(
        "Say what holds from now on, in place of what did.",
        "lasthop behaviour set --max-size 8MiB --type 'image/*' --handling background",
        "lasthop behaviour set --pull-on mno --fixed pull",
    ),
)
def change(
    handling: Annotated[
        str | None, typer.Option(help="foreground, notify, background or silent.")
    ] = None,
    reliability: Annotated[
        str | None, typer.Option(help="How hard a message is tried that does not say.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="A content type that bodies may have.")
    ] = None,
    max_size: Annotated[str | None, typer.Option(help="The largest body: 64KiB, 8MiB.")] = None,
    pull: Annotated[
        bool, typer.Option("--pull", help="Devices get a poke, and pull bodies.")
    ] = False,
    pull_on: Annotated[
        list[str] | None, typer.Option(help="A link over which large bodies are pulled.")
    ] = None,
    fixed: Annotated[
        list[str] | None, typer.Option(help="What messages may not choose for themselves.")
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    asked: dict[str, object] = {
        "handling": handling,
        "reliability": reliability,
        "content_types": types or None,
        "max_size": None if max_size is None else int(Size.parse(max_size)),
        "pull": pull or None,
        "pull_on": pull_on or None,
        "fixed": fixed or None,
    }
    body = {name: value for name, value in asked.items() if value is not None}
    with RestClient(url, token=token, app=app) as client:
        _tell(client.call("PUT", _path(app or ""), body=body), as_json)


@commands.command(
    help=described(
        "Take back what was set: what the gateway's configuration says holds again.",
        "lasthop behaviour clear",
    )
)
def clear(
    url: Url = DEFAULT_URL, token: Token = None, app: App = DEFAULT_APP, as_json: Json = False
) -> None:
    with RestClient(url, token=token, app=app) as client:
        _tell(client.call("DELETE", _path(app or "")), as_json)
