"""`lasthop service`: which services devices offer, and asking one."""

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
from lasthop.runtime.cli.tables import table

commands = new_commands("Services that devices offer: list them, and show one.")


@commands.command("list", help=described("What devices do for others.", "lasthop service list"))
def list_services(
    operation: Annotated[
        str, typer.Option(help="Only those that have an operation of this name.")
    ] = "",
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        query = f"?operation={segment(operation)}" if operation else ""
        services = client.call("GET", f"/v1/services{query}")["services"]
    if as_json:
        say_json(services)
        return
    rows = [
        (
            f"{row['service']['name']}@{row['service'].get('version', '1')}",
            str(row["providers"]),
            str(row["in_contact"]),
            row["service"].get("about", ""),
        )
        for row in services
    ]
    table(("service", "devices", "in contact", "about"), rows)


@commands.command(
    help=described("The interface of a service, and who offers it.", "lasthop service show pricing")
)
def show(
    name: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        services = client.call("GET", f"/v1/services/{segment(name)}")["services"]
    if as_json:
        say_json(services)
        return
    for offer in services:
        _show(offer)


def _show(offer: dict[str, Any]) -> None:
    service = offer["service"]
    say(f"{service['name']}, version {service.get('version', '1')}")
    if service.get("about"):
        say(service["about"])
    others = offer["providers"] - len(offer["devices"])
    more = f" and {others} more" if others else ""
    say(f"offered by {', '.join(offer['devices'])}{more}; {offer['in_contact']} in contact")
    rows = [
        (o["name"], o.get("takes", ""), o.get("gives", ""), o.get("about", ""))
        for o in service.get("operations", [])
    ]
    if rows:
        table(("operation", "takes", "gives", "about"), rows)
