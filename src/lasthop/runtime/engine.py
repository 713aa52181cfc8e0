"""The live driver: it turns the gateway's crank on the event loop.

Inputs come from doors (`call`) and channels; once per turn of the loop their consequences are
drawn, effects carried out and, when none is being written, the next commit handed to the writer's
thread. While that writes, the next commit collects.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import structlog

from lasthop.clock import SECOND, Clock, Micros
from lasthop.core.effects import Changed, Disconnect, Effect, Fetch, Send
from lasthop.core.gateway import Gateway
from lasthop.delivery.channel import Channel
from lasthop.errors import Overloaded, StoreError, StoreFull
from lasthop.store.base import Reader
from lasthop.store.commit import Commit, DeliveryRow
from lasthop.store.writer import CommitWriter
from lasthop.wire.hop.frames import CloseCode, Frame

T = TypeVar("T")

RETRY_WHEN_FULL = 1.0
"""Seconds between attempts to write when the disk is full."""

log = structlog.get_logger()


class Engine:
    """Runs one gateway. Everything but the writer and the reader happens on the event loop."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        writer: CommitWriter,
        reader: Reader,
        clock: Clock,
        failed: Callable[[StoreError], None],
    ) -> None:
        self.gateway = gateway
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="lasthop-reader")
        self._channels: dict[int, Channel] = {}
        self._last_channel = 0
        self._turning = False
        self._writing: Commit | None = None
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._durable = gateway.durable
        self._watchers: dict[int, set[asyncio.Event]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due: Micros | None = None
        self._refusal: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._poke()

    # For doors.

    def now(self) -> Micros:
        return self._clock.now()

    async def call(self, act: Callable[[Gateway, Micros], T]) -> T:
        if self._refusal is not None:
            raise Overloaded(self._refusal, retry_after=RETRY_WHEN_FULL)
        result = act(self.gateway, self._clock.now())
        horizon = self.gateway.horizon
        self.gateway.hurry()
        self._poke()
        if horizon > self._durable:
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((horizon, future))
            await future
        return result

    async def read(self, ask: Callable[[Reader], T]) -> T:
        return await self._loop.run_in_executor(self._reading, ask, self._reader)

    async def wait(
        self, key: int, ready: Callable[[list[DeliveryRow]], bool], seconds: float
    ) -> list[DeliveryRow]:
        changed = asyncio.Event()
        self._watchers.setdefault(key, set()).add(changed)
        self.gateway.watch(key)
        deadline = self._loop.time() + seconds
        try:
            while True:
                changed.clear()
                rows = await self.read(lambda reader: reader.deliveries(key))
                if ready(rows):
                    return rows
                try:
                    async with asyncio.timeout_at(deadline):
                        await changed.wait()
                except TimeoutError:
                    return rows
        finally:
            self.gateway.unwatch(key)
            self._watchers[key].discard(changed)
            if not self._watchers[key]:
                del self._watchers[key]

    # For channels.

    def opened(self, channel: Channel) -> None:
        self._last_channel += 1
        channel.number = self._last_channel
        self._channels[channel.number] = channel

    def received(self, channel: Channel, frames: Sequence[Frame]) -> None:
        self.gateway.frames_received(channel.number, frames, self._clock.now(), local=channel.local)
        self._poke()

    def paused(self, channel: Channel, paused: bool) -> None:
        self.gateway.channel_paused(channel.number, paused)
        self._poke()

    def lost(self, channel: Channel, reason: str) -> None:
        self._channels.pop(channel.number, None)
        self.gateway.channel_lost(channel.number, reason, self._clock.now())
        self._poke()

    # The crank.

    def _poke(self) -> None:
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turning = False
        gateway = self.gateway
        now = self._clock.now()
        gateway.wake(now)
        gateway.settle(now)
        self._perform(gateway.effects())
        if self._writing is None:
            commit = gateway.commit(now)
            if commit is not None:
                self._write(commit)
        self._arm(now)

    def _write(self, commit: Commit) -> None:
        self._writing = commit
        self._writer.submit(commit, self._written)

    def _written(self, n: int, error: StoreError | None) -> None:
        self._loop.call_soon_threadsafe(self._committed, n, error)

    def _committed(self, n: int, error: StoreError | None) -> None:
        commit, self._writing = self._writing, None
        if error is not None:
            assert commit is not None
            self._not_committed(commit, error)
            return
        self._refusal = None
        self._durable = n
        self.gateway.committed(n, self._clock.now())
        waiting = self._waiting
        while waiting and waiting[0][0] <= n:
            future = waiting.popleft()[1]
            if not future.done():
                future.set_result(None)
        self._turn()

    def _not_committed(self, commit: Commit, error: StoreError) -> None:
        """Nothing was written. A full disk is waited out; anything else ends this process.

        Those who wait are told at once: what they asked for may still happen, which is what a
        publisher's idempotency key is for.
        """
        log.error("commit refused", commit=commit.n, error=str(error))
        self._refusal = str(error)
        while self._waiting:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_exception(Overloaded(str(error), retry_after=RETRY_WHEN_FULL))
        if isinstance(error, StoreFull):
            self._writing = commit
            self._loop.call_later(RETRY_WHEN_FULL, self._write, commit)
        else:
            self._failed(error)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                channel = self._channels.get(effect.channel)
                if channel is not None:
                    channel.send(effect.frames)
            elif isinstance(effect, Disconnect):
                channel = self._channels.get(effect.channel)
                if channel is not None:
                    channel.close(effect.code, effect.reason, effect.retry_after_ms)
            elif isinstance(effect, Changed):
                for changed in self._watchers.get(effect.message, ()):
                    changed.set()
            else:
                task = self._loop.create_task(self._fetch(effect))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _fetch(self, fetch: Fetch) -> None:
        messages = await self.read(lambda reader: reader.messages(fetch.keys))
        self.gateway.fetched(messages, self._clock.now())
        self._poke()

    def _arm(self, now: Micros) -> None:
        due = self.gateway.next_wake()
        if due is not None and due <= now and self._writing is not None:
            due = None  # The end of the write turns the crank.
        if due == self._timer_due and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_due = due
        if due is not None:
            self._timer = self._loop.call_later(max(0, due - now) / SECOND, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._poke()

    async def close(self) -> None:
        """Say goodbye to everyone and write what is left."""
        self._refusal = "the gateway is shutting down"
        for channel in list(self._channels.values()):
            channel.close(CloseCode.SHUTTING_DOWN, "the gateway is shutting down", 1000)
        while self._writing is not None or not self.gateway.idle:
            if self._writing is None:
                commit = self.gateway.commit(self._clock.now(), flush=True)
                if commit is not None:
                    self._write(commit)
            await asyncio.sleep(0.001)
        if self._timer is not None:
            self._timer.cancel()
        await self._loop.run_in_executor(None, self._writer.close)
        self._reading.shutdown()
