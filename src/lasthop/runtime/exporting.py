"""The thread that exports events from the store to the log's files."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import structlog

from lasthop.clock import SECOND, Clock
from lasthop.errors import StoreError
from lasthop.eventlog.exporter import Exporter, Rolling
from lasthop.eventlog.following import followed

RETRY = 5.0
"""Seconds until the next attempt when the files could not be written; the store keeps the events
meanwhile."""

log = structlog.get_logger()


PROMPT = Rolling()
"""When a new segment of the log is started while a program reads the segments."""


class Export:
    """Runs an exporter in a thread until it is closed. The store must not be closed before that."""

    def __init__(self, exporter: Exporter, clock: Clock, *, log: Path | None = None) -> None:
        self._exporter = exporter
        self._clock = clock
        self._log = log
        """The directory in which a program that follows the segments announces itself."""
        self._leisurely = exporter.rolling if log is not None else PROMPT
        self._closing = Event()
        self._thread = Thread(target=self._run, name="lasthop-export", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Export what is left, and stop the thread."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            now = self._clock.now()
            if self._log is not None:
                within = followed(self._log, now)
                hurried = self._leisurely if within is None else Rolling(age=within)
                self._exporter.rolling = hurried
            try:
                due = self._exporter.step(now)
            except StoreError as error:
                log.error("events not exported; trying again", error=str(error))
                self._closing.wait(RETRY)
            else:
                self._closing.wait(max(0, due - self._clock.now()) / SECOND)
        try:
            self._exporter.finish(self._clock.now())
        except StoreError as error:
            log.error("events not exported; left for the next start", error=str(error))
