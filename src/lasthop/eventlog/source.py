"""Where events come from before they are in a segment: what the log needs of a store.

Stores satisfy this by their shape; the log imports none of them.
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
        """Consecutive pages, the first of which starts at `first`, of about `limit_bytes` in all
        but at least one if there is any; if `first` was dropped, the oldest that are left."""
        ...

    def event_at(self, offset: int) -> bytes | None:
        """One line without its newline; None when it was dropped or is yet to come."""
        ...

    def exported_to(self) -> int:
        """All events below this offset are in sealed segments."""
        ...
