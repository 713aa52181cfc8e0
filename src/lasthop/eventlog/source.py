"""What the log needs of a store: events that are not in a segment yet.

Stores satisfy these protocols by their shape; the log imports none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Page(Protocol):
    """Consecutive events: `count` JSON lines, each ended by a newline, from offset `first` on."""

    @property
    def first(self) -> int: ...

    @property
    def count(self) -> int: ...

    @property
    def lines(self) -> bytes: ...


class EventPages(Protocol):
    """Committed events, at least from `exported_to` on."""

    def events(self, first: int, limit_bytes: int) -> Sequence[Page]:
        """Return consecutive pages from offset `first` on: about `limit_bytes` in all, and at least
        one page if there is any. If the event at `first` was dropped, the pages start with the
        oldest event that is left."""
        ...

    def event_at(self, offset: int) -> bytes | None:
        """Return one line without its newline; None when it was dropped or does not exist yet."""
        ...

    def exported_to(self) -> int:
        """Return the offset below which all events are in sealed segments."""
        ...
