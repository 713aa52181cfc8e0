"""Where an HTTP request or a WebSocket comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from lasthop.transport.stream import is_local


def from_this_machine(scope: Mapping[str, Any]) -> bool:
    """Whether the peer is a program on this machine.

    A page that a browser loaded from elsewhere is not, though the browser is.
    """
    client = scope.get("client")
    if client is None or not is_local(tuple(client)):
        return False
    for name, value in scope.get("headers", ()):
        if name.lower() == b"origin":
            host = urlsplit(value.decode("latin-1")).hostname
            return host == "localhost" or (host is not None and is_local((host,)))
    return True
