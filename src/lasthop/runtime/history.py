"""Finds the history of one delivery, whose events may be in the store or in the log's files."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import msgspec

from lasthop.access.live_gateway import LiveGateway
from lasthop.errors import NotFound
from lasthop.eventlog.reader import LogReader
from lasthop.eventlog.story import ExplainedEvent, explain, still_waiting, story
from lasthop.events import Event
from lasthop.store.base import Reader


async def tell_now(live: LiveGateway, log: Path, message: int, device: int) -> list[ExplainedEvent]:
    """Return what happened to a message for a device, and as the last line what it waits for if it
    has not ended."""
    events = await live.read(lambda store: tell(store, log, message=message, device=device))
    now = live.now()
    waiting = live.look(lambda gateway: gateway.waiting(message, device, now))
    if waiting is not None and events:
        events.append(still_waiting(events[0], waiting.reason, waiting.until, now))
    return events


_decode = msgspec.json.Decoder(Event).decode


def tell(store: Reader, log: Path, *, message: int, device: int) -> list[ExplainedEvent]:
    """Return what happened to a message for a device, oldest event first; raise `NotFound` if the
    message was not for the device or is no longer stored."""
    for row in store.deliveries(message):
        if row.device == device:
            break
    else:
        raise NotFound("this message was not for this device, or is no longer kept")
    with ExitStack() as stack:
        files: list[LogReader] = []

        def find(offset: int) -> Event | None:
            line = store.event_at(offset)
            if line is not None:
                return _decode(line)
            if not files:  # Opening the files takes time, and is rarely needed.
                files.append(stack.enter_context(LogReader(log)))
            return files[0].find(offset)

        return explain(story(find, row.last_event))
