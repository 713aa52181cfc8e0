"""Accepted types: each side lists what it understands, and the favourite goes without saying.

The lists travel in HELLO and WELCOME. The types are alternative ways to write the same content
(AMME, section 6.2.3): a sender that has a choice takes what the receiver prefers.
"""

from __future__ import annotations

from collections.abc import Collection

from lasthop.message import DEFAULT_CONTENT_TYPE
from lasthop.wire.hop.frames import Headers


def preferred(accept: tuple[str, ...]) -> str:
    """The type that a message for the owner of this list has when it names none."""
    return accept[0] if accept else DEFAULT_CONTENT_TYPE


def choose(available: Collection[str], accept: tuple[str, ...]) -> str | None:
    """Of the types that we can write, the one that the peer likes best; None if it knows none.

    A peer without a list takes anything, so it gets our own favourite.
    """
    if not accept:
        return next(iter(available), None)
    return next((content_type for content_type in accept if content_type in available), None)


def content_type(headers: Headers | None, accept: tuple[str, ...]) -> str:
    """The type of a message that was received by the owner of this list."""
    if headers is None or headers.content_type is None:
        return preferred(accept)
    return headers.content_type
