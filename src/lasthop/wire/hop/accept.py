"""Accepted content types: each side lists what it understands, and its first choice need not be
named.

The lists travel in HELLO and WELCOME. The types are alternative ways to write the same content
(AMME, section 6.2.3): a sender that has a choice takes the type that the receiver prefers.
"""

from __future__ import annotations

from collections.abc import Collection

from lasthop.message import DEFAULT_CONTENT_TYPE
from lasthop.wire.hop.frames import Headers


def preferred(accept: tuple[str, ...]) -> str:
    """Return the content type of a message that names none, for the receiver with this accept
    list."""
    return accept[0] if accept else DEFAULT_CONTENT_TYPE


def choose(available: Collection[str], accept: tuple[str, ...]) -> str | None:
    """Return the available content type that the peer prefers; None if its list has none of them.

    A peer without a list accepts any type and gets the first available one.
    """
    if not accept:
        return next(iter(available), None)
    return next((content_type for content_type in accept if content_type in available), None)


def content_type(headers: Headers | None, accept: tuple[str, ...]) -> str:
    """Return the content type of a received message; `accept` is the receiver's own list."""
    if headers is None or headers.content_type is None:
        return preferred(accept)
    return headers.content_type
