"""Listeners for every event. They run in the thread that copies events to the log's files, so that
nothing that sends or receives messages waits for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from lasthop.eventlog.source import EventPages, Page
from lasthop.events import Event

EventListener: TypeAlias = Callable[[Event], None]

_decode = msgspec.json.Decoder(Event).decode


class ListenedEvents:
    """Reads the store's events for the export, and passes each event to the listeners when it is
    first exported."""

    def __init__(self, pages: EventPages, listeners: Sequence[EventListener]) -> None:
        self._pages = pages
        self._listeners = listeners
        self._next = pages.exported_to()

    def events(self, first: int, limit_bytes: int) -> Sequence[Page]:
        found = self._pages.events(first, limit_bytes)
        for page in found:
            for offset, line in enumerate(page.lines.splitlines(), page.first):
                # After a failed export the same events are asked for again.
                if offset >= self._next:
                    self._next = offset + 1
                    event = _decode(line)
                    for listener in self._listeners:
                        listener(event)
        return found

    def event_at(self, offset: int) -> bytes | None:
        return self._pages.event_at(offset)

    def exported_to(self) -> int:
        return self._pages.exported_to()
