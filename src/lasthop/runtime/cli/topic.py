"""`lasthop topic`: advertise, withdraw and list topics, and change what a message is worth."""

from __future__ import annotations

from typing import Annotated

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

commands = new_commands("Topics: advertise, withdraw, list, and rank.")

Name = Annotated[str, typer.Argument(help="Words separated by dots.")]


@commands.command(
    help=described(
        "Let it be known that a topic will have messages.",
        'lasthop topic advertise news.world --title "The world today"',
    )
)
def advertise(
    topic: Name,
    title: Annotated[str, typer.Option(help="What it is about, for people.")] = "",
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        made = client.call("PUT", f"/v1/topics/{segment(topic)}", body={"title": title})
    if as_json:
        say_json(made)
    else:
        say(f"{topic} is advertised; it has {made['subscribers']} subscribers")


@commands.command(
    help=described(
        "Let it be known that a topic will have no more messages.",
        "lasthop topic withdraw news.world",
    )
)
def withdraw(
    topic: Name,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        gone = client.call("DELETE", f"/v1/topics/{segment(topic)}")
    if as_json:
        say_json(gone)
    else:
        say(f"{topic} is withdrawn; {gone['told']} subscribers are told")


@commands.command("list", help=described("What there is to subscribe to.", "lasthop topic list"))
def list_topics(
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        topics = client.call("GET", "/v1/topics")["topics"]
    if as_json:
        say_json(topics)
        return
    rows = [(row["topic"], str(row["subscribers"]), row["source"], row["title"]) for row in topics]
    table(("topic", "subscribers", "publisher", "title"), rows)


@commands.command(
    help=described(
        "Change what a message is worth; devices that keep it move it, or forget it.",
        "lasthop topic rank 0292c5a1f3c000000000000000000001 0.5",
    )
)
def rank(
    message: Annotated[str, typer.Argument(help="Its id.")],
    rank: Annotated[float, typer.Argument(help="What it is worth among others of its topic.")],
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    with RestClient(url, token=token, app=app) as client:
        changed = client.call("PATCH", f"/v1/messages/{segment(message)}", body={"rank": rank})
    if as_json:
        say_json(changed)
    else:
        say(f"{changed['id']} ranks {changed['rank']:g}; {changed['open']} deliveries are open")
