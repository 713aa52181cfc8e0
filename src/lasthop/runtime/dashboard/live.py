"""What the gateway does now, sampled once a second for the open pages.

The gateway's counters are read once a second, so that messages cost nothing more. Only while a page
is open, some deliveries are timed and a few events are picked from each commit: at most a fixed
number a second, however busy the gateway is.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable

import msgspec

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.core.lifecycle import State
from lasthop.errors import Overloaded
from lasthop.events import Event
from lasthop.message import key_time
from lasthop.store.commit import Commit

PERIOD = 1.0
"""Seconds between two samples of the counters."""

HISTORY = 300
"""The number of samples that a page gets when it opens: five minutes."""

LINGER = 300
"""The number of samples that are still taken after the last page was closed, so that a reload has
no gap."""

MOST_WATCHERS = 64
"""The largest number of pages that watch at the same time; each of them holds a connection."""

MOST_TIMED = 2000
"""The largest number of deliveries that are timed in one period: enough for percentiles."""

MOST_EVENTS = 12
"""The largest number of events shown for one period: nobody can read more."""

RECENT = 200
"""The number of recent messages that are remembered; of each commit, at most `PER_COMMIT`
messages."""

PER_COMMIT = 4

_decode = msgspec.json.Decoder(Event).decode


class RecentMessage(msgspec.Struct):
    """A message that was accepted recently."""

    id: str
    app: str
    to: str
    source: str
    at: Micros
    size: int


class Happened(msgspec.Struct, omit_defaults=True):
    """An event of the log, as a page shows it."""

    at: Micros
    kind: str
    app: str = ""
    device: str = ""
    message: str = ""
    reason: str = ""
    link: str = ""


class GatewayTotals(msgspec.Struct, omit_defaults=True):
    """The gateway's counters, read once a period."""

    accepted: int
    ended: dict[str, int]
    commits: int
    commit_seconds: float
    connections: int
    devices: int
    messages: int
    """The number of messages with deliveries that have not ended."""


class Sample(msgspec.Struct, omit_defaults=True):
    """A sample of one period: the counters as rates per second, and the present state of the
    gateway."""

    at: Micros
    accepted: float
    ended: dict[str, float]
    commits: float
    commit_ms: float
    """The mean duration of a commit, in milliseconds."""
    connections: int
    devices: int
    messages: int
    latency: tuple[float, float, float] | None = None
    """The latency of deliveries, in milliseconds: median, 90th and 99th percentile."""
    events: list[Happened] = []


class Live:
    """Samples for all open pages, and the recently accepted messages."""

    def __init__(self, totals: Callable[[], GatewayTotals], now: Callable[[], Micros]) -> None:
        self._totals = totals
        self._now = now
        self.recent: deque[RecentMessage] = deque(maxlen=RECENT)
        self._history: deque[Sample] = deque(maxlen=HISTORY)
        self._task: asyncio.Task[None] | None = None
        self._tick = asyncio.Condition()
        self._count = 0
        """The number of samples taken so far."""
        self._watchers = 0
        self._closed = False
        self._latencies: list[Micros] = []
        self._events: list[Happened] = []

    @property
    def watchers(self) -> int:
        """The number of open pages that watch."""
        return self._watchers

    def committed(self, commit: Commit) -> None:
        """Note that a commit is durable. This is called for every commit, and does almost nothing
        while no page watches."""
        for message in commit.messages[-PER_COMMIT:]:
            self.recent.append(
                RecentMessage(
                    message.id,
                    message.app,
                    str(message.target),
                    message.source,
                    message.accepted_at,
                    len(message.body),
                )
            )
        if self._task is not None:
            self._look_into(commit)

    def _look_into(self, commit: Commit) -> None:
        room = MOST_TIMED - len(self._latencies)
        if room > 0:
            for row in commit.deliveries:
                if row.state == State.DELIVERED:
                    self._latencies.append(max(0, row.changed_at - key_time(row.message)))
                    room -= 1
                    if not room:
                        break
        room = MOST_EVENTS - len(self._events)
        if room > 0 and commit.event_count:
            for line in bytes(commit.events).split(b"\n", room)[:room]:
                if line:
                    self._events.append(_happened(_decode(line)))

    def watch(self) -> AsyncIterator[list[Sample]]:
        """Yield the present history, and then every new sample, until the gateway shuts down. Raise
        `Overloaded` if too many pages watch."""
        if self._watchers >= MOST_WATCHERS:
            raise Overloaded("too many pages are open", retry_after=10)
        return self._samples()

    async def _samples(self) -> AsyncIterator[list[Sample]]:
        self._watchers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            seen = self._count
            yield list(self._history)
            while not self._closed:
                async with self._tick:
                    while self._count == seen and not self._closed:
                        await self._tick.wait()
                # A slow page gets the newest of the samples that it missed, not all of them.
                missed = min(self._count - seen, len(self._history))
                seen = self._count
                if missed:
                    yield list(self._history)[-missed:]
        finally:
            self._watchers -= 1

    async def close(self) -> None:
        """End the streams of all pages, because the gateway shuts down."""
        self._closed = True
        async with self._tick:
            self._tick.notify_all()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        before, since = self._totals(), self._now()
        lingered = 0
        while lingered < LINGER:
            lingered = 0 if self._watchers else lingered + 1
            await asyncio.sleep(PERIOD)
            after, now = self._totals(), self._now()
            self._history.append(self._sample(before, after, now, (now - since) / SECOND))
            before, since = after, now
            self._count += 1
            async with self._tick:
                self._tick.notify_all()
        self._history.clear()
        self._task = None

    def _sample(
        self, before: GatewayTotals, after: GatewayTotals, now: Micros, seconds: float
    ) -> Sample:
        seconds = max(seconds, 1e-3)
        commits = after.commits - before.commits
        spent = after.commit_seconds - before.commit_seconds
        ended = Counter(after.ended)
        ended.subtract(before.ended)
        sample = Sample(
            at=now,
            accepted=(after.accepted - before.accepted) / seconds,
            ended={state: count / seconds for state, count in ended.items() if count},
            commits=commits / seconds,
            commit_ms=1000 * spent / commits if commits else 0.0,
            connections=after.connections,
            devices=after.devices,
            messages=after.messages,
            latency=_percentiles(self._latencies),
            events=self._events,
        )
        self._latencies, self._events = [], []
        return sample


def _percentiles(values: list[Micros]) -> tuple[float, float, float] | None:
    if not values:
        return None
    values.sort()
    last = len(values) - 1
    half, most, all_but = (values[round(last * share)] / MILLISECOND for share in (0.5, 0.9, 0.99))
    return half, most, all_but


def _happened(event: Event) -> Happened:
    return Happened(
        at=event.t,
        kind=event.kind,
        app=event.app,
        device=event.dev,
        message=f"{event.msg:016x}" if event.msg else "",
        reason=event.reason,
        link=event.link,
    )
