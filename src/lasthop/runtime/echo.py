"""Events among the gateway's own log lines, for whoever debugs with that alone.

With `log_level = "debug"` every event is also said on standard error, with the ids of its message
and device. It happens in the thread that copies events to the log's files, so that nobody who
sends or receives waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import structlog

from lasthop.eventlog.source import Page, Pages
from lasthop.events import Event

log = structlog.get_logger("lasthop.events")

_decode = msgspec.json.Decoder(Event).decode

_SAID = ("app", "topic", "link", "state", "reason", "policy", "size", "bytes")
"""What is worth a word of an event that has it, beside its ids."""


class Echo:
    """The store's events, each of which is said when it is first asked for."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._next = pages.exported_to()

    def events(self, first: int, limit_bytes: int) -> Sequence[Page]:
        found = self._pages.events(first, limit_bytes)
        for page in found:
            for offset, line in enumerate(page.lines.splitlines(), page.first):
                # After a failure the same events are asked for again.
                if offset >= self._next:
                    self._next = offset + 1
                    say(_decode(line))
        return found

    def event_at(self, offset: int) -> bytes | None:
        return self._pages.event_at(offset)

    def exported_to(self) -> int:
        return self._pages.exported_to()


def say(event: Event) -> None:
    """One event as one line."""
    facts: dict[str, object] = {"n": event.n}
    if event.dev:
        facts["device"] = event.dev
    if event.msg:
        facts["message"] = f"{event.msg:016x}"
    facts |= {name: value for name in _SAID if (value := getattr(event, name))}
    log.debug(event.kind, **facts)
