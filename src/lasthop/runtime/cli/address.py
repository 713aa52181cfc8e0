"""`lasthop address`: client addresses of PAP that stand for users, groups and devices."""

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
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.cli.tables import table

Address = Annotated[str, typer.Argument(metavar="TYPE:VALUE", help="The address.")]


commands = new_commands("Client addresses of PAP, and who they stand for.")


@commands.command(
    "set",
    help=described(
        "Let an address stand for a user, a topic, a device, or everyone of the app.",
        "lasthop address set USER:staff topic:staff",
        "lasthop address set USER:alice@example.org user:alice",
    ),
)
def set_address(
    address: Address,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="device:NAME, user:NAME, topic:NAME or app:")
    ],
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    with desk(url, token, app, data) as office:
        made = office.point(address, target)
    if as_json:
        say_json(made)
    else:
        say(f"{made['address']} stands for {made['target']}")


@commands.command(
    "list",
    help=described("Show an app's addresses that stand for something.", "lasthop address list"),
)
def list_addresses(
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    with desk(url, token, app, data) as office:
        found = office.addresses()
    if as_json:
        for row in found:
            say_json(row)
        return
    table(["address", "target"], [[row["address"], row["target"]] for row in found])


@commands.command(
    "remove",
    help=described("Let an address stand for nobody.", "lasthop address remove USER:staff"),
)
def remove(
    address: Address,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    with desk(url, token, app, data) as office:
        removed = office.point(address, None)
    if as_json:
        say_json({"removed": removed["address"]})
    else:
        say(f"removed {removed['address']}")
