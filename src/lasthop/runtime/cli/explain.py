"""`lasthop explain`: explain what happened to a message for one device, and why."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lasthop.eventlog.story import ExplainedEvent
from lasthop.message import parse_id
from lasthop.runtime.cli.client import RestClient
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
from lasthop.runtime.failure import Failure
from lasthop.runtime.history import tell
from lasthop.runtime.places import LOG_DIRECTORY
from lasthop.store.sqlite import SqliteReader

commands = new_commands()


@commands.command(
    help=described(
        "Explain what happened to a message for one device: every decision with its time and"
        " its reason.",
        "lasthop explain 03a8f1c2b4d5e6f7 phone",
        "lasthop explain 03a8f1c2b4d5e6f7 phone --data ./data",
    )
)
def explain(
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", help="The message's id, or its short form.")
    ],
    device: Annotated[str, typer.Argument(metavar="DEVICE", help="The name of the device.")],
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    data: Data = None,
    as_json: Json = False,
) -> None:
    key = parse_key(message)
    if data is not None:
        events = _from_store(data, app, key, device)
    else:
        events = _from_gateway(url, token, app, message, device)
    for line in events:
        if as_json:
            say_json(line)
        else:
            say(str(line))


def parse_key(text: str) -> int:
    """Return the key in a message id; fail on a text that is not a message id."""
    try:
        return parse_id(text)[0]
    except ValueError as error:
        raise Failure(f"{text!r} is not a message id: {error}", exit_code=2) from None


def _from_store(data: Path, app: str, key: int, device: str) -> list[ExplainedEvent]:
    with closing(SqliteReader.beside(data)) as store:
        known = store.device(app, device)
        if known is None:
            raise Failure(f"no device {device!r} in app {app!r}")
        return tell(store, data / LOG_DIRECTORY, message=key, device=known.device)


def _from_gateway(
    url: str, token: str | None, app: str, message: str, device: str
) -> list[ExplainedEvent]:
    with RestClient(url, token=token, app=app) as client:
        answer = client.call("GET", f"/v1/messages/{message}/explain", query={"device": device})
    return msgspec.convert(answer, list[ExplainedEvent])
