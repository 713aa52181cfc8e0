"""The rows of topics that remember their last messages."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros


class RememberedRow(msgspec.Struct, array_like=True, gc=False):
    """A message that its topic remembers; removed with the message."""

    message: int
    app: str
    topic: str
    place: int
    """The message's place in the history of its topic, which ascends; 0 while it is scheduled."""
    size: int
    """The size of the body in bytes."""
    at: Micros
    """When the message appears in its topic: at acceptance, or at its scheduled time."""
    expires: Micros = 0
    """When the message leaves the history by itself; 0 if only the topic's bounds end it."""
    replace_key: str | None = None
    """The key under which a later message of the same source takes this one's place."""
    source: str = ""
    """The source of a message with a replace key; empty for others."""


class HistoryChanges(msgspec.Struct):
    """What topics remember and forget in one commit. A message is never remembered again after it
    was forgotten."""

    rows: dict[int, RememberedRow] = {}
    forgotten: list[int] = []
    """Messages that their topics remember no longer; applied after `rows`."""


class HistoryRestored(msgspec.Struct, frozen=True):
    """What topics remember when a store is opened."""

    rows: Iterable[RememberedRow] = ()
    """One row for each message, in ascending order of message."""
