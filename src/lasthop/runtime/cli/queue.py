"""`lasthop queue`: queues that consumers share."""

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

commands = new_commands("Queues: make, list, show, and who takes from them.")

Name = Annotated[str, typer.Argument(help="The queue.")]
Device = Annotated[list[str], typer.Argument(help="Devices.")]


@commands.command(
    help=described(
        "Make a queue, or change it.", "lasthop queue make jobs --patience 300 --prefetch 1"
    )
)
def make(
    name: Name,
    title: Annotated[str, typer.Option(help="What it is for, for people.")] = "",
    closed: Annotated[
        bool, typer.Option("--closed", help="Devices do not join by themselves.")
    ] = False,
    patience: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=1, help="What a consumer has not finished then, another gets."
        ),
    ] = 60.0,
    prefetch: Annotated[
        int, typer.Option(min=1, max=1000, help="Messages that a consumer has at a time.")
    ] = 16,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    body = {"title": title, "open": not closed, "patience": patience, "prefetch": prefetch}
    with RestClient(url, token=token, app=app) as client:
        made = client.call("PUT", f"/v1/queues/{segment(name)}", body=body)
    if as_json:
        say_json(made)
    else:
        say(f"{name} has {made['waiting']} messages and {made['consumers']} consumers")


@commands.command("list", help=described("The queues of the app.", "lasthop queue list"))
def list_queues(
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        queues = client.call("GET", "/v1/queues")["queues"]
    if as_json:
        say_json(queues)
        return
    columns = ("name", "waiting", "consumers", "patience", "prefetch", "title")
    table(columns, [[str(queue[column]) for column in columns] for queue in queues])


@commands.command(
    help=described("Who takes from a queue, and what they have.", "lasthop queue show jobs")
)
def show(
    name: Name,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        queue = client.call("GET", f"/v1/queues/{segment(name)}", query={"limit": 1000})
    if as_json:
        say_json(queue)
        return
    say(f"{queue['waiting']} messages wait")
    rows = [
        (d["device"], "in contact" if d["in_contact"] else "away", str(d["holding"]))
        for d in queue["devices"]
    ]
    table(("consumer", "", "has"), rows)


@commands.command(help=described("Let devices take from it.", "lasthop queue add jobs printer"))
def add(
    name: Name,
    device: Device,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        move(client, f"queues/{name}/consumers", device, belongs=True, as_json=as_json)


@commands.command(
    help=described("Let devices take from it no longer.", "lasthop queue drop jobs printer")
)
def drop(
    name: Name,
    device: Device,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        move(client, f"queues/{name}/consumers", device, belongs=False, as_json=as_json)


@commands.command(help=described("Remove a queue that is empty.", "lasthop queue remove jobs"))
def remove(
    name: Name,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        gone = client.call("DELETE", f"/v1/queues/{segment(name)}")
    if as_json:
        say_json(gone)
    else:
        say(f"{name} is no more; {gone['left']} devices took from it")
