"""`lasthop credential`: who may publish and administer."""

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

SCOPES = "publish, devices or admin; repeatable."


commands = new_commands("Who may publish and administer.")


@commands.command(
    "add",
    help=described(
        "Make a credential. Its token is shown once and not kept.",
        "lasthop credential add shop --scope publish",
        "lasthop credential add root --scope admin --data ./data",
        'lasthop credential add shop --certificate "CN=shop,O=Example"',
    ),
)
def add_credential(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who it is for.")],
    scope: Annotated[list[str] | None, typer.Option("--scope", help=SCOPES)] = None,
    certificate: Annotated[
        str | None,
        typer.Option(metavar="SUBJECT", help="Of a TLS client certificate, instead of a token."),
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    with desk(url, token, app, data) as office:
        made = office.add_credential(name, scope or ["publish"], certificate)
    if as_json:
        say_json(made)
    elif certificate is not None:
        say(f"{name} is whoever shows the certificate {certificate}")
    else:
        say(made["token"])


@commands.command(
    "list",
    help=described("Show an app's.", "lasthop credential list --json"),
)
def list_credentials(
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    with desk(url, token, app, data) as office:
        found = office.credentials()
    if as_json:
        for row in found:
            say_json(row)
        return
    table(
        ["name", "scopes", "created", "revoked"],
        [
            [
                row["name"],
                " ".join(row["scopes"]),
                row["created_at"],
                "revoked" if row.get("revoked") else "",
            ]
            for row in found
        ],
    )


@commands.command(
    "revoke",
    help=described("Accept all credentials of a name no longer.", "lasthop credential revoke shop"),
)
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As given to `add`.")],
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    with desk(url, token, app, data) as office:
        count = office.revoke(name)
    if as_json:
        say_json({"revoked": count})
    else:
        say(f"revoked {count}")
