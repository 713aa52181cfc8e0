"""Requests that are answered by a call and not by a conversation.

ASGI gives every request a task and lets it ask for its body piece by piece. A small request whose
body is there can do without: a door that has a `take` gets it as one value, and answers when it
can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Request(NamedTuple):
    """A whole request, as far as a door wants to know it."""

    headers: dict[bytes, bytes]
    """Names in lower case; none came twice."""
    body: bytes
    peer: str | None = None
    """The address at the other end."""
    certificate: str | None = None
    """The subject of the certificate that the client has shown."""


class Response(NamedTuple):
    """A whole answer."""

    status: int
    content_type: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Besides the type and the length."""


Respond: TypeAlias = Callable[[Response], None]
Take: TypeAlias = Callable[[Request, Respond], None]
"""Answers a request by calling `respond` once, at any time."""
