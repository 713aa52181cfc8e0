"""`lasthop status`: show whether a gateway is ready, and what its store holds."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from lasthop.core.lifecycle import State
from lasthop.runtime.cli.client import RestClient
from lasthop.runtime.cli.options import DEFAULT_URL, Data, Json, Token, Url, described, new_commands
from lasthop.runtime.cli.output import say_json
from lasthop.runtime.cli.tables import table
from lasthop.runtime.failure import Failure
from lasthop.runtime.places import find
from lasthop.store.sqlite import SqliteReader

commands = new_commands()


@commands.command(
    help=described(
        "Show whether a gateway is ready; with --data also what its store holds. The exit code"
        " is 1 if it is not ready.",
        "lasthop status",
        "lasthop status --data ./data --json",
    )
)
def status(
    url: Url = DEFAULT_URL, token: Token = None, data: Data = None, as_json: Json = False
) -> None:
    found: dict[str, Any] = {}
    if data is None:
        found |= _of_gateway(url, token)
    else:
        places = find(data)
        found["running"] = places is not None
        if places is not None:
            found |= {"pid": places.pid, "http": places.http, "tcp": places.tcp}
            found |= _of_gateway(places.http, token)
        found |= _of_store(data)
    if as_json:
        say_json(found)
    else:
        table(["", ""], [[name.replace("_", " "), value] for name, value in found.items()])
    if found.get("ready") is False:
        raise Failure("the gateway is not ready")


def _of_gateway(url: str, token: str | None) -> dict[str, Any]:
    with RestClient(url, token=token) as client:
        ready = client.call("GET", "/ready", accept_refusal=True)
        metrics = client.call("GET", "/metrics").decode()
    found: dict[str, Any] = {"ready": ready.get("status") == "ok"}
    for line in metrics.splitlines():
        name, _, value = line.rpartition(" ")
        if name in _SHOWN:
            found[_SHOWN[name]] = int(float(value))
    return found


_SHOWN = {
    "lasthop_messages_accepted_total": "accepted_since_start",
    'lasthop_deliveries_total{state="delivered"}': "delivered_since_start",
    "lasthop_commits_total": "commits_since_start",
    "lasthop_open_deliveries": "open_deliveries",
    "lasthop_connections": "connections",
    "lasthop_devices": "devices",
}


def _of_store(data: Path) -> dict[str, Any]:
    with closing(SqliteReader.beside(data)) as reader:
        counts = reader.counts()
    by_state = counts.open_deliveries | counts.finished_deliveries
    return {
        "messages": counts.messages,
        **{State(state).name.lower(): n for state, n in sorted(by_state.items())},
        "registered_devices": counts.devices,
        "events": counts.events,
    }
