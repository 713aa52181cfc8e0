"""The stream: silver and the operational tables of gold, seconds behind the gateway.

The stream is the batch job, more often: the same ingestion with a trigger, and after every
micro-batch the same functions over the days that it touched. So a batch over the same input gives
the same rows, and a process that was killed continues where the files say it was. Events that come
later than `LATENESS` days after the newest one are counted, and left for the next batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from lasthop.pipeline.bronze import BATCH_BYTES, Ingestion
from lasthop.pipeline.ids import ID
from lasthop.pipeline.jobs import Pipeline, late


@dataclass(slots=True)
class StreamProgress:
    """The progress of the stream so far, and of its last batch."""

    batches: int = 0
    events: int = 0
    quarantined: int = 0
    days: list[str] = field(default_factory=list)
    """Days that the last batch has made."""
    late_days: list[str] = field(default_factory=list)
    """Days that wait for the next batch run."""
    late_events: int = 0
    """Events of the late days that silver does not have yet."""
    behind: float = 0.0
    """Seconds from the newest event of the last batch until the tables had it."""
    seconds: float = 0.0
    """Seconds that the last batch took."""


class LogStream:
    """Follows an event log and keeps the tables of a lake up to date."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        told: Callable[[StreamProgress], None] = lambda progress: None,
        now: Callable[[], float] = time.time,
        batch_bytes: int | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._told = told
        self._now = now
        self._batch_bytes = batch_bytes or BATCH_BYTES
        self.progress = StreamProgress()

    def start(self, *, every: str = "5 seconds", available_now: bool = False) -> StreamingQuery:
        """Start the stream; what an earlier process ingested and did not finish is made first."""
        ingestion = Ingestion(
            self._pipeline.spark,
            self._pipeline.log,
            self._pipeline.lake,
            after_batch=lambda batch: self._refresh(ingestion),
            batch_bytes=self._batch_bytes,
        )
        self._refresh(ingestion)
        return ingestion.start(available_now=available_now, every=every)

    def _refresh(self, ingestion: Ingestion) -> None:
        began = time.monotonic()
        pipeline, progress = self._pipeline, self.progress
        pipeline.identify()
        fresh, old = late(pipeline.changed(), newest=self._newest_day())
        if fresh:
            starts = pipeline.make_silver(fresh)
            pipeline.make_gold(starts, fresh)
            pipeline.settle(fresh)
        progress.late_days = [day.isoformat() for day in old]
        progress.late_events = self._missing(old)
        progress.days = [day.isoformat() for day in fresh]
        progress.batches = ingestion.done.batches
        progress.events = ingestion.done.events
        progress.quarantined = ingestion.done.quarantined
        progress.seconds = time.monotonic() - began
        if fresh:
            progress.behind = self._now() - pipeline.end_of_log() / 1e6
            self._told(progress)

    def _newest_day(self) -> date | None:
        days = self._pipeline.lake.dates("bronze", "events")
        return days[-1] if days else None

    def _missing(self, days: list[date]) -> int:
        """Return how many events of these days bronze has and silver has not."""
        if not days:
            return 0
        counts = []
        for frame in (self._pipeline.bronze(), self._pipeline.silver("events")):
            of_days = frame.where(fn.col("date").isin(*days))
            counts.append(of_days.select(*ID).distinct().count())
        return counts[0] - counts[1]
