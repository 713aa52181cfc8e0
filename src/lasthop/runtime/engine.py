"""The live driver, which runs a gateway on the event loop.

Inputs come from doors (`call`) and channels. Once per turn of the loop the gateway draws the
consequences, its effects are carried out, and the next commit, if it is time, is handed to the
writer's thread. While the thread writes, changes are collected for the next commit.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias, TypeVar

import structlog

from lasthop.clock import SECOND, Clock, Micros
from lasthop.core.effects import (
    Appeared,
    Carry,
    Changed,
    CloseChannel,
    Consult,
    Effect,
    Fetch,
    MatchFilters,
    Notify,
    Recall,
    Send,
    SendPiece,
    SentElsewhere,
)
from lasthop.core.gateway import Gateway
from lasthop.core.pushes.results import write_result
from lasthop.delivery.carrier import Carrier, NotReached, Outcome
from lasthop.delivery.channel import Channel
from lasthop.delivery.sms.sms_carrier import Heard
from lasthop.delivery.sms.sms_link import SmsReceipt
from lasthop.errors import LasthopError, OutcomeOpen, Overloaded, StoreError, StoreFull
from lasthop.message import Message
from lasthop.store.base import Reader
from lasthop.store.commit import Commit, DeliveryRow
from lasthop.store.writer import CommitWriter
from lasthop.surrogate import mail
from lasthop.wire.hop.frames import CloseCode, Frame
from lasthop.wire.pap.answers import AnswerVerdict, PapAnswer
from lasthop_xml.xpath.reading import Reading

T = TypeVar("T")

Tell: TypeAlias = Callable[[str, str, bytes], Awaitable[PapAnswer]]
"""A function that posts a body of this content type to a URL, and returns the meaning of the
answer."""

RETRY_WHEN_FULL = 1.0
"""Seconds between attempts to write when the disk is full."""

LONGEST_SLEEP = 60.0
"""The longest sleep, in seconds. Timers run on a monotonic clock, deadlines on a clock that can be
set or that stops while the machine sleeps, so deadlines are checked at least this often."""

GOODBYE = "the gateway is shutting down"
RETURN_AFTER_MS = 1000
"""Milliseconds that devices are told to wait before they connect again after a shutdown; a restart
takes about as long."""

log = structlog.get_logger()


class Observer:
    """The interface by which metrics observe the engine. This base class ignores everything."""

    def committed(self, commit: Commit, seconds: float) -> None:
        """Record that a commit is durable, `seconds` after it was handed to the writer."""

    def disconnected(self, code: CloseCode) -> None:
        """Record that the gateway closed a channel with this code."""

    def carried(self, variant: str, outcome: Outcome) -> None:
        """Record that a carrier of this variant has reported on a parcel."""


class Engine:
    """Runs one gateway. Everything but writing and reading the store happens on the event loop."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        writer: CommitWriter,
        reader: Reader,
        clock: Clock,
        failed: Callable[[StoreError], None],
        observer: Observer | None = None,
        carriers: Mapping[str, Carrier] | None = None,
        tell: Tell | None = None,
        consult: Callable[[Consult], None] | None = None,
        match: Callable[[MatchFilters], None] | None = None,
    ) -> None:
        """`failed` is called when the store can no longer be written or read; `tell` posts results
        to initiators; `consult` asks surrogates; `match` has the filters read a large body."""
        self.gateway = gateway
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._failed = failed
        self._observer = observer or Observer()
        self._carriers = carriers or {}
        gateway.air.withdraw = self._withdraw
        self._tell = tell
        self._consult = consult
        self._match = match
        self.listeners: Callable[[Appeared], None] | None = None
        """The function that tells listeners what appears in a topic; None without a door for
        them."""
        self._loop = asyncio.get_running_loop()
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="lasthop-reader")
        self._channels: dict[int, Channel] = {}
        self._last_channel = 0
        self._turning = False
        self._writing: deque[tuple[Commit, float]] = deque()
        """The commits that the writer has, and when each was handed over."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._durable = gateway.durable
        self._watchers: dict[int, set[asyncio.Event]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due: Micros | None = None
        self._refusal: str | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._draining = False
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._poke()

    # For doors.

    def now(self) -> Micros:
        return self._clock.now()

    async def call(self, act: Callable[[Gateway, Micros], T]) -> T:
        refusal = GOODBYE if self._stopped else self._refusal
        if refusal is not None:
            raise Overloaded(f"{refusal}; nothing was done", retry_after=RETRY_WHEN_FULL)
        result = act(self.gateway, self._clock.now())
        try:
            await self.durable()
        except Overloaded as error:
            # The commit is kept and written when there is room, unless the process ends before.
            detail = f"{error}; the outcome is open"
            raise OutcomeOpen(detail, retry_after=RETRY_WHEN_FULL) from None
        return result

    async def durable(self) -> None:
        if self._refusal is not None:
            raise Overloaded(self._refusal, retry_after=RETRY_WHEN_FULL)
        horizon = self.gateway.horizon
        self.gateway.hurry()
        self._poke()
        if horizon > self._durable:
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((horizon, future))
            await future

    def look(self, ask: Callable[[Gateway], T]) -> T:
        return ask(self.gateway)

    async def read(self, ask: Callable[[Reader], T]) -> T:
        return await self._loop.run_in_executor(self._reading, ask, self._reader)

    async def wait(
        self, key: int, ready: Callable[[list[DeliveryRow]], bool], seconds: float
    ) -> list[DeliveryRow]:
        changed = asyncio.Event()
        self._watchers.setdefault(key, set()).add(changed)
        self.gateway.deliveries.watch(key)
        deadline = self._loop.time() + seconds
        try:
            # Changes before the watch are not announced, and may not be written yet.
            await self.durable()
            while True:
                changed.clear()
                rows = await self.read(lambda reader: reader.deliveries(key))
                if ready(rows) or self._draining:
                    return rows
                try:
                    async with asyncio.timeout_at(deadline):
                        await changed.wait()
                except TimeoutError:
                    return rows
        finally:
            self.gateway.deliveries.unwatch(key)
            self._watchers[key].discard(changed)
            if not self._watchers[key]:
                del self._watchers[key]

    def channel(self, number: int) -> Channel | None:
        """Return an open channel by number, or None."""
        return self._channels.get(number)

    async def watch(self, key: int, ask: Callable[[Gateway], T | None], seconds: float) -> T | None:
        changed = asyncio.Event()
        self._watchers.setdefault(key, set()).add(changed)
        self.gateway.deliveries.watch(key)
        deadline = self._loop.time() + seconds
        try:
            while True:
                changed.clear()
                answer = ask(self.gateway)
                if answer is not None or self._draining:
                    return answer
                try:
                    async with asyncio.timeout_at(deadline):
                        await changed.wait()
                except TimeoutError:
                    return ask(self.gateway)
        finally:
            self.gateway.deliveries.unwatch(key)
            self._watchers[key].discard(changed)
            if not self._watchers[key]:
                del self._watchers[key]

    @property
    def connections(self) -> int:
        """The number of device channels that are open."""
        return len(self._channels)

    @property
    def ready(self) -> bool:
        """Whether the gateway accepts work: not while it shuts down or the disk is full."""
        return self._refusal is None and not self._draining

    def drain(self) -> None:
        """Answer all requests that wait for an outcome with the present state, because a shutdown
        has begun."""
        self._draining = True
        for watchers in self._watchers.values():
            for changed in watchers:
                changed.set()

    def reachable(self, host: str) -> None:
        """Tell the gateway that a client over the air has called from this address."""
        if not self._stopped:
            self.gateway.air.reachable_at(host, self._clock.now())
            self._poke()

    def receipted(self, receipt: SmsReceipt, heard: Heard) -> None:
        """Note a network's receipt; `heard` is told whether its message is known once that is
        durable, and never if it could not be noted."""
        names = [f"{receipt.link}/{message_id}" for message_id in receipt.message_ids]

        async def note() -> None:
            try:
                known = await self.call(
                    lambda gateway, now: gateway.air.receipts.noted(
                        names, receipt.state, receipt.error, now
                    )
                )
            except LasthopError as error:
                log.warning("a receipt was not noted", smsc=receipt.link, error=str(error))
            else:
                heard(known)

        if not self._stopped:
            self._begin(note())

    # For channels.

    def opened(self, channel: Channel) -> None:
        self._last_channel += 1
        channel.number = self._last_channel
        self._channels[channel.number] = channel
        self.gateway.channel_opened(channel.number, reliable=channel.reliable)

    def received(self, channel: Channel, frames: Sequence[Frame]) -> None:
        self.gateway.frames_received(channel.number, frames, self._clock.now(), local=channel.local)
        self._poke()

    def paused(self, channel: Channel, paused: bool) -> None:
        self.gateway.channel_paused(channel.number, paused, self._clock.now())
        self._poke()

    def drained(self, channel: Channel) -> None:
        if self._stopped:
            return
        self.gateway.pieces.drained(channel.number, self._clock.now())
        self._poke()

    def lost(self, channel: Channel, reason: str) -> None:
        self._channels.pop(channel.number, None)
        self.gateway.channel_lost(channel.number, reason, self._clock.now())
        self._poke()

    # For surrogates.

    def consulted(self, app: str, number: int, verdict: mail.Verdict) -> str | None:
        if self._stopped:
            return None
        refused = self.gateway.surrogates.consulted(app, number, verdict, self._clock.now())
        self._poke()
        return refused

    def consult_failed(self, app: str, number: int, reason: str, *, hopeless: bool) -> None:
        if not self._stopped:
            now = self._clock.now()
            self.gateway.surrogates.failed(app, number, reason, now, hopeless=hopeless)
            self._poke()

    def surrogate_state(self, app: str) -> dict[str, bytes]:
        post = self.gateway.surrogates.post(app)
        return {} if post is None else post.state

    # For the reader of large bodies.

    def filters_matched(self, message: int, reading: Reading) -> None:
        if not self._stopped:
            self.gateway.topics.matched(message, reading, self._clock.now())
            self._poke()

    def filter_expressions(self) -> Iterable[tuple[str, str]]:
        return self.gateway.topics.index.filters.expressions()

    # Turns of the event loop.

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
        self._write_next(now)
        self._arm(now)

    def _write_next(self, now: Micros) -> None:
        if self._stopped:
            return  # What is left is written by `stop`, which knows when the store is closed.
        commit = self.gateway.commit(now)
        if commit is not None:
            self._write(commit)

    def _write(self, commit: Commit) -> None:
        self._writing.append((commit, time.perf_counter()))
        self._writer.submit(commit, self._written)

    def _write_again(self) -> None:
        for commit, _ in self._writing:
            self._writer.submit(commit, self._written)

    def _written(self, n: int, error: StoreError | None) -> None:
        self._loop.call_soon_threadsafe(self._committed, n, error)

    def _committed(self, n: int, error: StoreError | None) -> None:
        commit, since = self._writing[0]
        if error is not None:
            # The commits behind it are refused for the same reason.
            if n == commit.n:
                self._not_committed(commit, error)
            return
        self._writing.popleft()
        self._refusal = None
        self._durable = n
        seconds = time.perf_counter() - since
        self.gateway.written(n)
        # Start the next write before answering those who waited, so that the disk is not idle.
        self._write_next(self._clock.now())
        self._observer.committed(commit, seconds)
        self.gateway.proceed(self._clock.now())
        waiting = self._waiting
        while waiting and waiting[0][0] <= n:
            future = waiting.popleft()[1]
            if not future.done():
                future.set_result(None)
        self._turn()

    def _not_committed(self, commit: Commit, error: StoreError) -> None:
        """Handle a refused commit: retry after a full disk, end the process after any other error.

        Waiting callers are told at once that the outcome is open: what they asked for happens when
        there is room, and never if the process ends before.
        """
        log.error("commit refused", commit=commit.n, error=str(error))
        self._refusal = str(error)
        while self._waiting:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_exception(Overloaded(str(error), retry_after=RETRY_WHEN_FULL))
        if isinstance(error, StoreFull):
            if self._stopped:
                return
            self._retry = self._loop.call_later(RETRY_WHEN_FULL, self._write_again)
        else:
            self._failed(error)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                channel = self._channels.get(effect.channel)
                if channel is not None:
                    channel.send(effect.frames)
            elif isinstance(effect, SendPiece):
                channel = self._channels.get(effect.channel)
                if channel is not None:
                    channel.send((effect.piece,))
                    channel.report_drained()
            elif isinstance(effect, SentElsewhere):
                channel = self._channels.get(effect.channel)
                if channel is not None:
                    channel.sent_elsewhere(effect.frames)
            elif isinstance(effect, CloseChannel):
                channel = self._channels.get(effect.channel)
                if channel is not None:
                    self._observer.disconnected(effect.code)
                    channel.close(effect.code, effect.reason, effect.retry_after_ms)
            elif isinstance(effect, Carry):
                self._carry(effect)
            elif isinstance(effect, Changed):
                for changed in self._watchers.get(effect.message, ()):
                    changed.set()
            elif isinstance(effect, Notify):
                self._begin(self._notify(effect))
            elif isinstance(effect, Consult):
                assert self._consult is not None, (
                    "a gateway with surrogates needs a consult function"
                )
                self._consult(effect)
            elif isinstance(effect, MatchFilters):
                assert self._match is not None, "a gateway with large bodies needs a match function"
                self._match(effect)
            elif isinstance(effect, Appeared):
                if self.listeners is not None:
                    self.listeners(effect)
            elif isinstance(effect, Recall):
                self._begin(self._recall(effect))
            else:
                self._begin(self._fetch(effect))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _carry(self, carry: Carry) -> None:
        variant = carry.parcel.route.variant
        carrier = self._carriers.get(variant)
        report = partial(self._carried, carry.message, carry.device, variant)
        if carrier is None:
            report(NotReached(f"this gateway does not serve {variant}"))
        else:
            carrier.carry(carry.parcel, report)

    def _withdraw(self, variant: str, number: int) -> bool:
        carrier = self._carriers.get(variant)
        return carrier is not None and carrier.withdraw(number)

    def _carried(self, message: int, device: int, variant: str, outcome: Outcome) -> None:
        if not self._stopped:
            self._observer.carried(variant, outcome)
            self.gateway.air.carried(message, device, outcome, self._clock.now())
            self._poke()

    async def _notify(self, notify: Notify) -> None:
        """Post a result to an initiator, and pass its answer to the gateway. A shutdown interrupts
        this; the next start posts the result again."""
        try:
            answer = await self._told(notify)
        except Exception as error:
            log.exception("result not reported to the initiator", url=notify.url)
            answer = PapAnswer(AnswerVerdict.LATER, f"a fault of the gateway: {error}")
        if not self._stopped:
            now = self._clock.now()
            self.gateway.notifications.answered(notify.message, notify.place, answer, now)
            self._poke()

    async def _told(self, notify: Notify) -> PapAnswer:
        if self._tell is None:
            return PapAnswer(AnswerVerdict.UNREACHABLE, "this gateway reports no results")
        replies: dict[int, Message] = {}
        if notify.reply:
            replies = await self.read(lambda reader: reader.messages([notify.reply]))
        kind, body = write_result(notify, replies.get(notify.reply))
        return await self._tell(notify.url, kind, body)

    async def _fetch(self, fetch: Fetch) -> None:
        try:
            messages = await self.read(lambda reader: reader.messages(fetch.keys))
        except StoreError as error:
            log.error("bodies could not be read", messages=len(fetch.keys), error=str(error))
            self._failed(error)
            return
        self.gateway.fetched(messages, self._clock.now())
        self._poke()

    async def _recall(self, recall: Recall) -> None:
        def ask(reader: Reader) -> tuple[dict[int, Message], set[int]]:
            return reader.messages(recall.keys), reader.delivered_to(recall.device, recall.keys)

        try:
            messages, had = await self.read(ask)
        except StoreError as error:
            log.error("messages could not be read", messages=len(recall.keys), error=str(error))
            self._failed(error)
            return
        self.gateway.recalled(recall.device, messages, had, self._clock.now())
        self._poke()

    def _arm(self, now: Micros) -> None:
        due = self.gateway.next_wake()
        if due is not None and due <= now and self._writing:
            due = None  # The end of the write starts the next turn.
        if due == self._timer_due and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_due = due
        if due is not None:
            delay = min(max(0, due - now) / SECOND, LONGEST_SLEEP)
            self._timer = self._loop.call_later(delay, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._poke()

    def send_away(self, url: str) -> None:
        """Send all devices to another gateway, because this one stops."""
        for channel in list(self._channels.values()):
            channel.close(CloseCode.MOVED, url)

    async def stop(self) -> None:
        """Close all channels and write what is left; the store stays open.

        If the store accepts no more writes, the changes that are left are lost; none of them was
        acknowledged to anybody.
        """
        self._stopped = True
        self.drain()
        for channel in list(self._channels.values()):
            channel.close(CloseCode.SHUTTING_DOWN, GOODBYE, RETURN_AFTER_MS)
        while self._refusal is None and (self._writing or not self.gateway.idle):
            if not self._writing:
                commit = self.gateway.commit(self._clock.now(), flush=True)
                if commit is not None:
                    self._write(commit)
            await asyncio.sleep(0.001)
        for handle in (self._timer, self._retry, *self._tasks):
            if handle is not None:
                handle.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Stop the engine, and close the store."""
        await self.stop()
        self._reading.shutdown()
        # The last connection to close merges the store's log into its file: let that be the
        # writer's.
        self._reader.close()
        await self._loop.run_in_executor(None, self._writer.close)
