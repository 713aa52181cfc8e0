"""Deletes old messages, keys and events in steps so small that nobody waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from lasthop.clock import Clock, Micros
from lasthop.errors import StoreError
from lasthop.eventlog.segment import day_of, directory_of, sealed_segments
from lasthop.runtime.settings import Retention
from lasthop.store.base import Forgotten, Store
from lasthop.store.writer import CommitWriter

INTERVAL = 300.0
"""Seconds between two rounds. A round that finds nothing takes some milliseconds."""

BREATH = 0.05
"""Seconds between two steps of a round, so that commits have the disk most of the time."""

KEEP_EVENTS = 100_000
"""The number of events, the newest, that stay in the store after their export: most deliveries that
`explain` is asked about are found without searching the log's files."""

log = structlog.get_logger()


class Housekeeping:
    """Deletes what is older than the retention from a store and its event log."""

    def __init__(
        self,
        writer: CommitWriter,
        retention: Retention,
        *,
        clock: Clock,
        log_directory: Path,
    ) -> None:
        self._writer = writer
        self._retention = retention
        self._clock = clock
        self._log_directory = log_directory

    async def run(self) -> None:
        """Do a round of housekeeping every `INTERVAL` seconds, until cancelled."""
        while True:
            try:
                await self.tidy()
            except (StoreError, OSError) as error:
                log.warning("housekeeping stopped early", error=str(error))
            await asyncio.sleep(INTERVAL)

    async def tidy(self) -> Forgotten:
        """Do one round of housekeeping; return the numbers of deleted records."""
        now = self._clock.now()
        total = Forgotten()
        start: int | None = 0
        while start is not None:
            step = await asyncio.wrap_future(self._writer.call(self._step(now, start)))
            total.messages += step.messages
            total.deliveries += step.deliveries
            total.keys += step.keys
            total.events += step.events
            start = step.next
            if start is not None:
                await asyncio.sleep(BREATH)
        segments = await asyncio.to_thread(trim_log, self._log_directory, now - self._retention.log)
        if total.messages or total.keys or segments:
            log.info("old records deleted", messages=total.messages, keys=total.keys, log=segments)
        return total

    def _step(self, now: Micros, start: int) -> Callable[[Store], Forgotten]:
        return lambda store: store.retire(
            messages_before=now - self._retention.messages,
            keys_before=now - self._retention.keys,
            keep_events=KEEP_EVENTS,
            start=start,
        )


def trim_log(directory: Path, before: Micros) -> int:
    """Remove the log's segments of all days that were over by `before`; return how many were
    removed."""
    oldest = directory_of(day_of(before))
    gone = [s for s in sealed_segments(directory) if s.path.parent.name < oldest]
    for segment in gone:
        segment.path.unlink(missing_ok=True)
    for day in {segment.path.parent for segment in gone}:
        with suppress(OSError):
            day.rmdir()
    return len(gone)
