"""`lasthop stream`: send a file or standard input as a stream, and fetch a stream."""

from __future__ import annotations

import sys
import zlib
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

commands = new_commands()

CHUNK = 256 << 10
"""Bytes in one request; each request is durable when it is answered."""


@commands.command(
    help=described(
        "Send a file as a stream; with --resume, continue an open stream where it stopped.",
        "lasthop stream send film.mp4 --to device:tablet",
        "tail -f readings.csv | lasthop stream send - --to device:monitor",
        "lasthop stream send film.mp4 --resume 03be4d5c92800000",
    )
)
def send(
    file: Annotated[str, typer.Argument(help="The file to send; - reads standard input.")],
    to: Annotated[str | None, typer.Option(help="The receiving device, as device:NAME.")] = None,
    resume: Annotated[str | None, typer.Option(help="Continue the stream with this id.")] = None,
    title: Annotated[str | None, typer.Option(help="The title of the stream.")] = None,
    content_type: Annotated[str | None, typer.Option(help="Content type of the stream.")] = None,
    priority: Annotated[
        int | None, typer.Option(min=0, max=9, help="Higher priorities are sent first.")
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    if (to is None) == (resume is None):
        raise Failure("give --to for a new stream, or --resume for an open one", exit_code=2)
    with RestClient(url, token=token, app=app) as client, _source(file) as source:
        if resume is None:
            new = {"to": to, "title": title, "content_type": content_type, "priority": priority}
            if new["title"] is None and file != "-":
                new["title"] = Path(file).name
            asked = {name: value for name, value in new.items() if value is not None}
            stream = client.call("POST", "/v1/streams", body=asked)
            if not as_json:
                say(f"stream {stream['id']} to {stream['to']}")
        else:
            stream = client.call("GET", f"/v1/streams/{resume}")
        done = _send(client, stream, source)
    if as_json:
        say_json(done)
    else:
        say(f"{done['position']} bytes, checksum {done['checksum']}")


def _source(file: str) -> IO[bytes]:
    return sys.stdin.buffer if file == "-" else Path(file).open("rb")


def _send(client: RestClient, stream: dict[str, Any], source: IO[bytes]) -> dict[str, Any]:
    path, position = f"/v1/streams/{stream['id']}", 0
    checksum = 0
    while position < stream["position"]:
        # What was already sent is read again, so that the checksum covers the whole file.
        known = source.read(min(CHUNK, stream["position"] - position))
        if not known:
            raise Failure("the file is shorter than the part of it that was already sent")
        checksum = zlib.crc32(known, checksum)
        position += len(known)
    while data := source.read1(CHUNK) if hasattr(source, "read1") else source.read(CHUNK):
        checksum = zlib.crc32(data, checksum)
        while data:
            query: dict[str, object] = {"offset": position}
            stream = client.call("PUT", f"{path}/content", query=query, body=data, wait=60)
            data = data[stream["position"] - position :]
            position = stream["position"]
    body = {"size": position, "checksum": f"{checksum:08x}"}
    answer: dict[str, Any] = client.call("POST", f"{path}/end", body=body)
    return answer


@commands.command(
    help=described(
        "Fetch a stream that a device sends to its publishers, from where fetching stopped to"
        " its end.",
        "lasthop stream fetch 03be4d5c92800000 --output readings.csv",
    )
)
def fetch(
    stream: Annotated[str, typer.Argument(help="The id of the stream.")],
    output: Annotated[
        Path | None,
        typer.Option(help="File for the stream; continued if it exists. [standard output]"),
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    app: App = DEFAULT_APP,
    as_json: Json = False,
) -> None:
    if as_json and output is None:
        raise Failure(
            "--json needs --output, because standard output carries the stream", exit_code=2
        )
    with RestClient(url, token=token, app=app) as client:
        state = client.call("GET", f"/v1/streams/{stream}")
        offset = state["taken"]
        sink = (
            sys.stdout.buffer if output is None else output.open("r+b" if output.exists() else "wb")
        )
        if output is not None:
            sink.truncate(offset)
            sink.seek(offset)
        while True:
            query = {"offset": offset, "timeout": 30}
            path = f"/v1/streams/{stream}/content"
            data = client.call("GET", path, query=query, wait=30, accept_refusal=True)
            if isinstance(data, dict):
                break  # The stream has ended.
            sink.write(data)
            sink.flush()
            offset += len(data)
        state = client.call("GET", f"/v1/streams/{stream}")
    if state["state"] != "complete":
        raise Failure(f"the stream was {state['state']}: {state.get('reason', '')}")
    if as_json:
        say_json(state)
