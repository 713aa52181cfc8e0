"""`lasthop group`: named groups of devices."""

from __future__ import annotations

from typing import Annotated

import typer

from lasthop.runtime.cli.client import RestClient, segment
from lasthop.runtime.cli.membership import move
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

commands = new_commands("Groups: make, list, show, and who belongs to them.")

Name = Annotated[str, typer.Argument(help="The group.")]
Device = Annotated[list[str], typer.Argument(help="Devices.")]
Title = Annotated[str, typer.Option(help="What it is for, for people.")]
Closed = Annotated[bool, typer.Option("--closed", help="Devices do not join by themselves.")]


@commands.command(
    help=described("Make a group, or change it.", 'lasthop group make crew --title "On duty"')
)
def make(
    name: Name,
    title: Title = "",
    closed: Closed = False,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        body = {"title": title, "open": not closed}
        made = client.call("PUT", f"/v1/groups/{segment(name)}", body=body)
    if as_json:
        say_json(made)
    else:
        say(f"{name} has {made['members']} members")


@commands.command("list", help=described("The groups of the app.", "lasthop group list"))
def list_groups(
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        groups = client.call("GET", "/v1/groups")["groups"]
    if as_json:
        say_json(groups)
        return
    rows = [
        (g["name"], str(g["members"]), "" if g["open"] else "closed", g["title"]) for g in groups
    ]
    table(("group", "members", "", "title"), rows)


@commands.command(help=described("Who belongs to a group.", "lasthop group show crew"))
def show(
    name: Name,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        group = client.call("GET", f"/v1/groups/{segment(name)}", query={"limit": 1000})
    if as_json:
        say_json(group)
        return
    for device in group["devices"]:
        say(device)
    if group.get("more"):
        say(f"... of {group['members']}")


@commands.command(help=described("Put devices into a group.", "lasthop group add crew phone watch"))
def add(
    name: Name,
    device: Device,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        move(client, f"groups/{name}/members", device, belongs=True, as_json=as_json)


@commands.command(help=described("Take devices out of a group.", "lasthop group drop crew phone"))
def drop(
    name: Name,
    device: Device,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        move(client, f"groups/{name}/members", device, belongs=False, as_json=as_json)


@commands.command(help=described("Let there be no such group.", "lasthop group remove crew"))
def remove(
    name: Name,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        gone = client.call("DELETE", f"/v1/groups/{segment(name)}")
    if as_json:
        say_json(gone)
    else:
        say(f"{name} is no more; {gone['left']} devices were in it")
