"""Follows the log: new events as they appear, from any offset on.

`Tail` only looks when asked; `follow` asks again after whatever waiting its caller wants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from lasthop.eventlog.reader import LogReader
from lasthop.events import Event

BATCH = 1000
"""Events read in one poll, so that a reader far behind still shows progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """A filter of events; a criterion that is left out excludes nothing."""

    app: str | None = None
    device: str | None = None
    message: int | None = None
    kinds: frozenset[str] = field(default_factory=frozenset)

    def wants(self, event: Event) -> bool:
        """Whether an event passes this filter."""
        return (
            (self.app is None or event.app == self.app)
            and (self.device is None or event.dev == self.device)
            and (self.message is None or event.msg == self.message)
            and (not self.kinds or event.kind in self.kinds)
        )


EVERYTHING = Only()


class Tail:
    """A position in the log that moves on. `offset` is where to resume, also in another process."""

    def __init__(self, reader: LogReader, *, start: int, only: Only = EVERYTHING) -> None:
        self.offset = start
        self._reader = reader
        self._only = only

    def poll(self, limit: int = BATCH) -> list[Event] | None:
        """Return those of the next `limit` events that pass the filter; None when there are no new
        events."""
        seen = list(islice(self._reader.events(self.offset), limit))
        if not seen:
            return None
        self.offset = seen[-1].n + 1
        return [event for event in seen if self._only.wants(event)]


def follow(tail: Tail, wait: Callable[[], bool]) -> Iterator[Event]:
    """Yield new events for ever. `wait` is called when there are none; returning False ends the
    loop."""
    while True:
        events = tail.poll()
        if events is not None:
            yield from events
        elif not wait():
            return
