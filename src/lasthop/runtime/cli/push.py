"""`lasthop push`: publish messages through a running gateway."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from lasthop.runtime.cli.client import RestClient
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
from lasthop.runtime.failure import Failure

BATCH_LINES = 500
"""Messages in one request: as many as a gateway accepts (`limits.batch`). A batch is one commit:
larger batches gain little and make other publishers wait."""

BATCH_BYTES = 4 << 20

KINDS = ("device", "user", "topic", "service", "group", "queue", "app")


commands = new_commands()


@commands.command(
    help=described(
        "Send a message to a topic, or to device:NAME, user:NAME, group:NAME, queue:NAME or"
        " app: (everyone).",
        "lasthop push news 'hello, world' --title Greeting --ttl 1h",
        "lasthop push device:phone hello --wait 10",
        "lasthop push group:crew 'all hands' --atomic --ttl 30s",
        "date | lasthop push news -",
        "lasthop push --batch messages.ndjson",
    )
)
def push(
    target: Annotated[
        str | None,
        typer.Argument(metavar="TARGET_OR_TOPIC", help="The topic or other target of the message."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="The body of the message; - reads stdin."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the message.")] = None,
    rank: Annotated[
        float | None, typer.Option(help="Rank of the message among those of its topic.")
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option(min=0, max=9, help="Higher priorities are sent first; 4 if not given."),
    ] = None,
    ttl: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time until the message expires: 90s, 2h, 3d."),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time until the message may be sent: 90s, 2h."),
    ] = None,
    delay_tolerance: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Longest wait for a better link: 90s, 2h."),
    ] = None,
    immediate: Annotated[
        bool,
        typer.Option(
            "--immediate",
            help="Send the message only to devices that can be reached now; fail if none can.",
        ),
    ] = False,
    replace_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Replace the pending message with this key.")
    ] = None,
    atomic: Annotated[
        bool,
        typer.Option(
            "--atomic", help="Show the message to all members of a group or to none; needs --ttl."
        ),
    ] = False,
    claim: Annotated[
        bool,
        typer.Option(
            "--claim",
            help="Let only the first device of a group that claims the message act on it.",
        ),
    ] = False,
    content_type: Annotated[
        str | None, typer.Option(help="Content type of the body, if not plain text.")
    ] = None,
    once: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Key with which repeated requests send the message once."),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Wait until a device has received the message; fail if none has.",
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File of messages as JSON, one per line; - reads stdin."),
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    if batch is not None:
        if target is not None:
            raise Failure(
                "--batch cannot be used with a target: the file names the targets", exit_code=2
            )
        with RestClient(url, token=token, app=app) as client:
            _push_batch(client, batch, once, as_json=as_json)
        return
    if target is None or not text:
        raise Failure(
            "a target and a text are needed: lasthop push TARGET_OR_TOPIC TEXT", exit_code=2
        )
    content = sys.stdin.buffer.read() if text == ["-"] else " ".join(text).encode()
    message: dict[str, object] = {
        "to": target if target.partition(":")[0] in KINDS and ":" in target else f"topic:{target}",
        "title": title,
        "rank": rank,
        "priority": priority,
        "ttl": ttl,
        "delay": delay,
        "delay_tolerance": delay_tolerance,
        "immediate": immediate or None,
        "replace_key": replace_key,
        "content_type": content_type,
        "atomic": atomic or None,
        "claim": claim or None,
        **_body(content),
    }
    given = {name: value for name, value in message.items() if value is not None}
    headers = {"Idempotency-Key": once} if once else None
    with RestClient(url, token=token, app=app) as client:
        accepted = client.call("POST", "/v1/messages", body=given, headers=headers)
        _report(client, accepted, wait, as_json=as_json)


def _body(content: bytes) -> dict[str, object]:
    try:
        return {"body": content.decode()}
    except UnicodeDecodeError:
        return {"body_base64": b64encode(content).decode()}


def _report(
    client: RestClient, accepted: dict[str, Any], wait: float | None, *, as_json: bool
) -> None:
    if wait is None:
        if as_json:
            say_json(accepted)
        else:
            say(accepted["id"])
        return
    query = {"wait": "delivered", "timeout": wait}
    status = client.call("GET", f"/v1/messages/{accepted['id']}", query=query, wait=wait)
    if as_json:
        say_json(status)
    else:
        states = ", ".join(f"{n} {state}" for state, n in status["summary"]["states"].items())
        say(f"{accepted['id']}  {states or 'no device to deliver to'}")
    if not status["satisfied"]:
        raise Failure(
            f"no device received the message in {wait:g} seconds; the gateway still has it"
        )


def _push_batch(client: RestClient, batch: str, once: str | None, *, as_json: bool) -> None:
    count = 0
    for number, lines in enumerate(_batches(batch)):
        headers = {"Content-Type": "application/x-ndjson"}
        if once:
            headers["Idempotency-Key"] = f"{once}/{number}"
        try:
            accepted = client.call("POST", "/v1/messages", body=b"".join(lines), headers=headers)
        except Failure as error:
            if not count:
                raise
            raise Failure(f"the first {count} messages are accepted, then: {error}") from None
        count += len(accepted["ids"])
        if as_json:
            say_json(accepted)
    if not as_json:
        say(f"{count} messages accepted")


def _batches(name: str) -> Iterator[list[bytes]]:
    if name == "-":
        yield from _cut(sys.stdin.buffer)
        return
    with Path(name).open("rb") as file:
        yield from _cut(file)


def _cut(file: IO[bytes]) -> Iterator[list[bytes]]:
    lines: list[bytes] = []
    size = 0
    for line in file:
        if not line.strip():
            continue
        if lines and (len(lines) == BATCH_LINES or size + len(line) > BATCH_BYTES):
            yield lines
            lines, size = [], 0
        lines.append(line if line.endswith(b"\n") else line + b"\n")
        size += len(line)
    if lines:
        yield lines
