"""Putting devices into groups and queues, and taking them out."""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.runtime.cli.client import RestClient, segment
from lasthop.runtime.cli.output import say, say_json

WORDS = {
    ("members", True): "is in",
    ("members", False): "is not in",
    ("consumers", True): "takes from",
    ("consumers", False): "does not take from",
}


def move(
    client: RestClient, path: str, devices: Iterable[str], *, belongs: bool, as_json: bool
) -> None:
    """Let devices belong to `groups/NAME/members` or `queues/NAME/consumers`, or not."""
    kind, name, role = path.split("/")
    for device in devices:
        place = f"/v1/{kind}/{segment(name)}/{role}/{segment(device)}"
        moved = client.call("PUT" if belongs else "DELETE", place)
        if as_json:
            say_json(moved)
        else:
            say(f"{device} {WORDS[role, moved['belongs']]} {name}")
