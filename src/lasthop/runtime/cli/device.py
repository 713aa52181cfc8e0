"""`lasthop device`: run one, and administer them."""

from __future__ import annotations

from typing import Annotated

import typer

from lasthop.runtime.cli.desks import desk
from lasthop.runtime.cli.options import (
    DEFAULT_APP,
    DEFAULT_URL,
    App,
    Data,
    Json,
    Token,
    Url,
    described,
    new_commands,
)
from lasthop.runtime.cli.output import say, say_json, table

Name = Annotated[str, typer.Argument(metavar="NAME", help="The device's name.")]


commands = new_commands("Run a device, and administer devices.")


@commands.command(
    "register",
    help=described(
        "Register a device. Its token is shown once and not kept.",
        "lasthop device register phone --user alice --topic news",
    ),
)
def register(
    name: Name,
    user: Annotated[str, typer.Option(help="Whose device it is.")] = "",
    topic: Annotated[list[str] | None, typer.Option(help="Subscribe it; repeatable.")] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    with desk(url, token, app, data) as office:
        made = office.register(name, user=user, topics=topic or [])
    if as_json:
        say_json(made)
    else:
        say(made["token"])


@commands.command(
    "list",
    help=described("Show an app's devices.", "lasthop device list"),
)
def list_devices(
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    with desk(url, token, app, data) as office:
        found = office.devices()
    if as_json:
        for row in found:
            say_json(row)
        return
    table(
        ["name", "user", "contact", "open", "topics"],
        [
            [
                row["name"],
                row["user"],
                row.get("link") or "yes" if row["in_contact"] else "",
                row["open"],
                " ".join(row["subscriptions"]),
            ]
            for row in found
        ],
    )


@commands.command(
    "remove",
    help=described(
        "Remove a device: what is open for it becomes undeliverable.",
        "lasthop device remove phone --erase",
    ),
)
def remove(
    name: Name,
    erase: Annotated[
        bool, typer.Option("--erase", help="Also forget everything that was sent to it.")
    ] = False,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    with desk(url, token, app, data) as office:
        office.remove(name, erase=erase)
    if as_json:
        say_json({"removed": name, "erased": erase})
    else:
        say(f"removed {name}")
