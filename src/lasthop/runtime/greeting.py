"""What a gateway prints when it is ready: its addresses, and on the first start what to try."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

import msgspec

from lasthop.runtime.places import Places

NAME = "lasthop"


def as_json(places: Places) -> None:
    """Print the gateway's addresses as one line of JSON, for programs."""
    _say(msgspec.json.encode(places).decode())


def for_people(places: Places) -> None:
    """Print the gateway's addresses and first steps, for people."""
    _say(
        "lasthop is ready",
        f"  publishers  {places.http}",
        f"  devices     {', '.join(_ways(places))}",
        f"  dashboard   {places.http}/dashboard",
        f"  data        {os.path.abspath(places.data)}",
    )
    if places.first_start and places.open_house:
        _say(
            "",
            f"Try it: open {places.http}/device in a browser, and see a push arrive.",
            "Or start a device in another terminal,",
            f"  {_command()} device run --url {places.tcp} --name phone --topic news",
            "and send it something from a third:",
            f"  curl -d 'hello, world' {places.http}/news",
        )
    elif places.first_start:
        _say(
            "",
            "Other machines can reach this gateway, so it needs credentials. Stop it and run",
            f"  {_command()} credential add admin --scope admin --data {places.data}",
        )


def _command() -> str:
    """Return how to call lasthop from a shell: by name where that leads to this program, else by
    path."""
    here = sys.argv[0]
    if os.path.basename(here) != NAME:
        return NAME
    found = shutil.which(NAME)
    known = found is not None and os.path.realpath(found) == os.path.realpath(here)
    return NAME if known else shlex.quote(here)


def _ways(places: Places) -> list[str]:
    """Return the addresses by which devices connect."""
    ways = [places.tcp, places.websocket, places.requests, places.beep, places.seqpacket]
    return [way for way in ways if way is not None]


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
