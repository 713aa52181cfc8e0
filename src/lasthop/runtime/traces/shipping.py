"""Sends journeys to a collector in batches, by a thread with a queue.

The thread also turns journeys into spans, so that a journey that is dropped has cost almost
nothing. If the collector is away, the same batch is tried again after growing pauses; meanwhile the
queue fills, and journeys without room are dropped and counted. Memory is bounded by the queue and
one batch.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Protocol

import structlog

from lasthop.runtime.traces.journeys import Journey

log = structlog.get_logger()

RETRYABLE = frozenset({429, 502, 503, 504})
"""The statuses of a collector that is only busy, according to OTLP. Any other refusal is final."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippingPace:
    """The sizes and times of sending spans."""

    queue: int = 16_384
    """The largest number of spans that wait to be sent: some 30 MB, or a few seconds of a busy
    gateway."""
    batch: int = 1024
    """The largest number of spans in one request, which then has about 1 MB."""
    interval: float = 2.0
    """The longest time in seconds that a span waits for its batch to become full."""
    first_pause: float = 1.0
    """Seconds to pause after a failure; every further pause is twice as long, up to
    `longest_pause`."""
    longest_pause: float = 30.0
    """The longest pause after failures, in seconds."""


@dataclass(frozen=True, slots=True)
class CollectorAnswer:
    """The answer of a collector to a batch; the status is 0 if the collector did not answer."""

    status: int
    reason: str = ""
    rejected: int = 0
    retry_after: float = 0.0


class SendBatch(Protocol):
    """Sends a batch of journeys to a collector, and returns the answer."""

    def __call__(self, journeys: list[Journey]) -> CollectorAnswer: ...


class Shipping:
    """The queue of journeys and the thread that sends them. `counts` are the numbers of spans by
    outcome."""

    def __init__(self, send: SendBatch, pace: ShippingPace | None = None) -> None:
        self._send = send
        self._pace = pace or ShippingPace()
        self._waiting: deque[Journey] = deque()
        self._spans = 0
        """The number of spans of the journeys that wait."""
        self._changed = Condition()
        self._closing = False
        self._away = False
        self.counts: Counter[str] = Counter({"sent": 0, "dropped": 0, "rejected": 0})
        self._thread = Thread(target=self._run, name="lasthop-traces", daemon=True)
        self._thread.start()

    def offer(self, journey: Journey) -> None:
        """Queue a journey if there is room for its spans; otherwise drop it."""
        size = journey.size
        with self._changed:
            if self._spans + size > self._pace.queue:
                self.counts["dropped"] += size
                return
            self._waiting.append(journey)
            self._spans += size
            if self._spans >= self._pace.batch:
                self._changed.notify()

    def close(self) -> None:
        """Try once to send what is left, and stop the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next():
            self._take(batch)

    def _next(self) -> list[Journey]:
        """Return the next batch; an empty one when it is time to stop."""
        pace = self._pace
        with self._changed:
            while not self._closing and self._spans < pace.batch:
                if not self._changed.wait(pace.interval) and self._waiting:
                    break
            batch: list[Journey] = []
            size = 0
            while self._waiting and size < pace.batch:
                batch.append(self._waiting.popleft())
                size += batch[-1].size
            self._spans -= size
            return batch

    def _take(self, batch: list[Journey]) -> None:
        size = sum(journey.size for journey in batch)
        pause = self._pace.first_pause
        while True:
            answer = self._send(batch)
            if answer.status and answer.status not in RETRYABLE:
                break
            self._say_once("traces not sent; the collector is away or busy", answer)
            with self._changed:
                if self._closing:
                    self._give_up(size)
                    return
                self._changed.wait_for(self._stopping, max(pause, answer.retry_after))
            pause = min(2 * pause, self._pace.longest_pause)
        accepted = answer.status // 100 == 2
        if accepted:
            self._away = False
        else:
            self._say_once("the collector refuses traces", answer)
        refused = answer.rejected if accepted else size
        with self._changed:
            self.counts["sent"] += size - refused
            self.counts["rejected"] += refused

    def _stopping(self) -> bool:
        return self._closing

    def _give_up(self, count: int) -> None:
        self.counts["dropped"] += count + self._spans
        self._waiting.clear()
        self._spans = 0

    def _say_once(self, what: str, answer: CollectorAnswer) -> None:
        """Log the first failure only, until the collector accepts again: it may be away for
        days."""
        if not self._away:
            self._away = True
            log.warning(what, status=answer.status, reason=answer.reason)
