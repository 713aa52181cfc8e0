"""Requests that are answered by one function call instead of an ASGI conversation.

ASGI gives every request a task and lets it ask for its body piece by piece. A small request whose
body has already arrived needs no such conversation: a door with a `take` function gets the request
as one value, and calls back with the response when it is ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Request(NamedTuple):
    """A whole HTTP request, with the parts that a door needs."""

    headers: dict[bytes, bytes]
    """The headers by name in lower case; a request with a repeated header goes through ASGI
    instead."""
    body: bytes
    peer: str | None = None
    """The address of the client, if known."""
    certificate: str | None = None
    """The subject of the TLS certificate that the client has shown, if any."""


class Response(NamedTuple):
    """A whole HTTP response to a `Request`."""

    status: int
    content_type: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Further headers, besides the content type and the length."""


Respond: TypeAlias = Callable[[Response], None]
Take: TypeAlias = Callable[[Request, Respond], None]
"""A door's function that answers a request by calling `respond` once, at any time."""
