"""A device on asyncio: it connects to the gateway, stays connected, and sends and receives
messages.

    async with Device("tcps://gateway:7300", app="shop", name="phone-1", token="...") as device:
        async for message in device.messages():
            print(message.text)

Decisions are made in `session`, durable data is in the inbox, the connection in `contact`; this
module is the application's view of them.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random as randomness
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

import msgspec

from lasthop.clock import SECOND, Clock, Micros
from lasthop.decision.heartbeat import Networks
from lasthop.device import told_ways
from lasthop.device.api.group_api import GroupApi
from lasthop.device.api.message_api import MessageApi
from lasthop.device.api.preference_api import PreferenceApi
from lasthop.device.api.service_api import ServiceApi
from lasthop.device.api.stream_api import StreamApi
from lasthop.device.api.topic_api import TopicApi
from lasthop.device.api.way_api import WayApi
from lasthop.device.clock import DeviceClock
from lasthop.device.contact import Contact
from lasthop.device.heartbeats import MEMORY, Heartbeats
from lasthop.device.inbox import Inbox
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.message import Message
from lasthop.device.preferences.sending_preferences import NO_PREFERENCES
from lasthop.device.probing import Pause, pause
from lasthop.device.ready_queue import ReadyQueue
from lasthop.device.retry import Backoff
from lasthop.device.runner import HandlerFailed, SessionRunner, Transactional, TurnOutcome
from lasthop.device.session import DeviceSession
from lasthop.device.terms import DeviceTerms
from lasthop.device.turns import Turns
from lasthop.device.way import MOST_WAYS, GatewayWay
from lasthop.errors import Conflict, InvalidRequest, StoreError
from lasthop.transport.address import parse
from lasthop.transport.encryption import insist

if TYPE_CHECKING:
    from lasthop.device.exchange.switchboard import ExchangeSwitchboard

T = TypeVar("T")

LONGEST_SLEEP = 60.0
"""The longest time between two checks of deadlines, in seconds: the clock by which deadlines are
measured can be set, or stop while the machine sleeps."""

Callback: TypeAlias = Callable[[Message], Awaitable[None] | None]


class Device(MessageApi, TopicApi, GroupApi, ServiceApi, StreamApi, PreferenceApi, WayApi):
    """A device of an app: connects to the gateway, receives messages and sends them.

    A received message stays in the device's inbox until the application is done with it; a message
    to send stays there until the gateway has it. Use it with `async with`, or call `open` and
    `close`.
    """

    def __init__(
        self,
        url: str,
        *,
        app: str,
        name: str,
        token: str | None = None,
        inbox: str | os.PathLike[str] | Inbox | None = None,
        tls: ssl.SSLContext | None = None,
        enc: bool = False,
        link: str | None = None,
        network: str | None = None,
        terms: DeviceTerms | None = None,
        clock: Clock | None = None,
        random: Callable[[], float] = randomness.random,
        backoff: Backoff | None = None,
        learn_heartbeat: bool = True,
        checksums: bool = True,
        pause: Pause = pause,
        ways: Iterable[GatewayWay] = (),
    ) -> None:
        """Prepare a device without connecting; `open` or `async with` starts it.

        - `url`: the gateway, as in `tcps://gateway:7300`.
        - `ways`: other ways to the gateway, used if they are preferred or the first fails.
        - `app`, `name`, `token`: the app, the device's name in it, and its credential.
        - `inbox`: a path of an SQLite file, or an `Inbox`; without one everything is lost with this
          object.
        - `tls`: replaces the default context, which trusts the certificates that the system trusts.
        - `enc`: connect only over encrypted links to a gateway whose certificate was checked.
        - `link`, `network`: how the device is connected (`wifi`, `mno`; the operator or the SSID).
        - `terms`: the device's limits; `app`, `name` and `token` replace those in it.
        - `learn_heartbeat`: find out, on extra connections, how seldom the device may ping.
        - `checksums`: offer checksums on links without TLS.
        - `clock`, `random`, `backoff`, `pause`: replaceable for tests.

        Raises InvalidRequest if the URL is invalid, or not encrypted although `enc` is given.
        """
        super().__init__()
        base = terms or DeviceTerms(app=app, name=name)
        self._terms = msgspec.structs.replace(base, app=app, name=name, token=token)
        self._enc = enc
        self._tls = tls
        self._first_ways = [GatewayWay(url, link, network), *ways]
        for way in self._first_ways:
            self._parse(way.url)
        if len(self._first_ways) > MOST_WAYS:
            raise InvalidRequest(f"a device has at most {MOST_WAYS} ways")
        self._place = inbox
        self._clock = clock or DeviceClock()
        self._backoff = backoff or Backoff(random=random)
        self._learns = learn_heartbeat
        self._checksums = checksums
        self._pause = pause
        self._thread: ThreadPoolExecutor | None = None
        self._ready = ReadyQueue()
        self._stirred = asyncio.Event()
        self._consumer: str | None = None
        self._closing: asyncio.Future[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._expiry_due: Micros | None = None
        self.switchboard: ExchangeSwitchboard | None = None
        """The object that sorts messages for exchanges; None until an exchange needs it."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
        if error is None and self._error is not None:
            raise self._error

    async def open(self) -> None:
        """Open the inbox and start to connect, without waiting for the gateway: see `contact`.
        Raises Conflict if the device is open already, or StoreError if the inbox cannot be read."""
        if self._runner is not None:
            raise Conflict("the device is open already")
        inbox, threaded = self._place, True
        # An inbox in memory never blocks, so its turns need no thread.
        if inbox is None or isinstance(inbox, MemoryInbox):
            inbox, threaded = inbox or MemoryInbox(), False
        elif isinstance(inbox, str | os.PathLike):
            inbox = await asyncio.to_thread(SqliteInbox, inbox)
        held = await asyncio.to_thread(inbox.load)
        if threaded:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="lasthop-inbox")
        self._runner = SessionRunner(DeviceSession(self._terms, held), inbox)
        self._turns = Turns(
            self._runner,
            clock=self._clock,
            carry_out=self._carry_out,
            failed=self._fail,
            thread=self._thread,
        )
        networks = Networks.load(await self._blocking(partial(self._runner.kept, MEMORY)))
        heartbeats = Heartbeats(
            networks,
            clock=self._clock,
            keep=partial(self._turns.keep, MEMORY),
            pause=self._pause,
        )
        self._contact = Contact(
            self._turns,
            self._first_ways,
            clock=self._clock,
            tls=self._tls,
            backoff=self._backoff,
            heartbeats=heartbeats,
            checksums=self._checksums,
            encrypted=self._enc,
            report=self._report,
        )
        told = told_ways.load(
            await self._blocking(partial(self._runner.kept, told_ways.MEMORY)), self._tls
        )
        self._contact.ways.told(told, self._clock.now())
        self._handles.on_link_spent = self._contact.spent
        if self._runner.session.preferences.preferences != NO_PREFERENCES:
            self._contact.prefer(self._runner.session.preferences.preferences)
        self.background(self._contact.run())
        if self._learns:
            self.background(heartbeats.learn(self._contact))

    async def close(self) -> None:
        """Make everything durable, take leave of the gateway, and close the inbox. Messages that
        were not sent leave when a device opens the same inbox again. Closing twice does nothing."""
        if self._runner is None:
            return
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close(self._runner))
        await asyncio.shield(self._closing)

    async def _close(self, runner: SessionRunner) -> None:
        self._ended.set()
        self._stirred.set()
        if self._expiry is not None:
            self._expiry.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._turns.idle()
        # Only after the turns under way: their frames must leave before the channel is closed.
        await self._contact.close()
        await self._turns.idle()
        closed = self._error or Conflict("the device is closed")
        self._turns.end(closed)
        self._handles.give_up(closed)
        try:
            await self._blocking(runner.close)
        except StoreError:
            # Otherwise the error that ended the device is the one to report.
            if self._error is None:
                raise
        finally:
            if self._thread is not None:
                self._thread.shutdown()

    async def run(self) -> None:
        """Wait until the device is closed; raise the error that ended it, if there was one."""
        await self._ended.wait()
        await self.close()
        if self._error is not None:
            raise self._error

    # Contact.

    @property
    def problem(self) -> str:
        """The reason, in words for people, why the device is not connected; if it is connected, why
        it last was not."""
        return self._contact.problem

    @property
    def damaged(self) -> int:
        """The number of channels that ended because the data that came over them could not be
        understood."""
        return self._contact.damaged

    async def contact(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Wait until the device is connected to the gateway. Raises TimeoutError after `timeout`
        seconds, or the error that ended the device."""
        waiting = asyncio.ensure_future(self._contact.welcomed_once())
        ending = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait([waiting, ending], timeout=timeout, return_when="FIRST_COMPLETED")
            if not waiting.done():
                if self._error is not None:
                    raise self._error
                raise TimeoutError(f"no contact: {self.problem}")
        finally:
            waiting.cancel()
            ending.cancel()

    # Messages for the application: only one of these three ways at a time.

    async def messages(self, *, automatic: bool = True) -> AsyncGenerator[Message, None]:
        """Yield the messages for the application in order, waiting for each; end when the device is
        closed.

        A message is done when the next one is asked for; if the loop ends before that, the message
        comes again after a restart. If `automatic` is False, a message is done only when the
        application calls `done`. Raises Conflict if another handler or loop gets the messages, or
        the error that ended the device.
        """
        self._claim("messages()")
        try:
            while (message := await self._next()) is not None:
                yield message
                if automatic:
                    self.finish(message)
        finally:
            self._consumer = None

    def on_message(self, callback: Callback) -> Callback:
        """Call a function or coroutine function with every message, in order; a message is done
        when the call returns. Usable as a decorator.

        An exception of the callback ends the device with HandlerFailed, and the message comes again
        after a restart. Raises Conflict if another handler or loop gets the messages.
        """
        self._claim("on_message")
        self.background(self._call(callback))
        return callback

    def transactional(self, handler: Transactional) -> Transactional:
        """Call a handler with every message and a transaction. The handler's work in the
        transaction and the end of the message become durable together, exactly once. Usable as a
        decorator.

        With an inbox on disk the handler runs in the inbox's thread, so it must not touch asyncio.
        If it raises, its work is undone and the device ends with HandlerFailed. Raises Conflict if
        another handler or loop gets the messages.
        """
        self._claim("transactional")
        runner, waiting = self.opened(), self._ready.clear()

        def install(session: DeviceSession, _now: int) -> None:
            session.put_back(waiting)
            runner.handler = handler

        self._turns.post(install)
        return handler

    def finish(self, message: Message) -> None:
        """Say that the application is done with a message, without waiting until that is durable:
        if the device crashes before, the message comes again."""
        self._turns.post(lambda session, _now: session.finished(message))

    def lapse(self, message: Message) -> None:
        """Say that the deadline of a message passed before the application looked at it."""
        self._turns.post(lambda session, _now: session.lapsed(message))

    async def done(self, message: Message) -> None:
        """Say that the application is done with a message; return when that is durable, so that the
        message does not come again after a crash."""
        await self._turns.ask(lambda session, _now: session.finished(message))

    # Within.

    def _parse(self, url: str) -> None:
        address = parse(url)
        if self._enc:
            insist(address, self._tls)

    def _carry_out(self, outcome: TurnOutcome) -> None:
        for session_event in outcome.session_events:
            self._handles.tell(session_event)
        if self._handles.unclaimed:
            # A `read` was cancelled before these arrived: hand them over as ordinary messages.
            self._ready.add(self._handles.unclaimed)
            self._handles.unclaimed = []
            self._stirred.set()
        self._watch_expiry(outcome.next_expiry)
        if outcome.ready:
            self._ready.add(outcome.ready)
            self._stirred.set()
        self._contact.send(outcome.frames, outcome.routed)
        if outcome.stuck:
            self._contact.begin_anew()
        # The frames were cut off at a budget. A full link starts a turn itself when it has room.
        if outcome.more and self._turns.room:
            self._turns.nudge()
        if outcome.fault is not None:
            self._contact.fail(outcome.fault)
        if outcome.failure is not None:
            self._fail(outcome.failure)

    def _watch_expiry(self, due: Micros | None) -> None:
        """Set the timer for the next deadline, so that an unread message expires in time and the
        gateway is told."""
        if due == self._expiry_due:
            return
        self._expiry_due = due
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if due is not None and not self._ended.is_set():
            delay = min(LONGEST_SLEEP, max(0.0, (due - self._clock.now()) / SECOND))
            self._expiry = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        self._expiry = self._expiry_due = None
        # A turn also decides again which of the messages to send may leave now.
        self._turns.post(lambda session, now: session.expire(now))

    def _claim(self, consumer: str) -> None:
        self.opened()
        if self._consumer is not None:
            raise Conflict(
                "another handler or loop already gets the messages of this device",
                taken=self._consumer,
                wanted=consumer,
            )
        self._consumer = consumer

    async def _next(self) -> Message | None:
        while True:
            if self._error is not None:
                raise self._error
            if self._ended.is_set():
                return None
            if self._ready:
                message = self._ready.take()
                # The deadline may have passed while the message waited for the application.
                if message.deadline is None or self._clock.now() < message.deadline:
                    if message.pull_size is not None:
                        message.fetcher = self.fetch
                    return message
                self.lapse(message)
                continue
            self._stirred.clear()
            await self._stirred.wait()

    async def _call(self, callback: Callback) -> None:
        while (message := await self._next()) is not None:
            try:
                result = callback(message)
                if inspect.isawaitable(result):
                    await result
            except Exception as error:
                raise HandlerFailed(message, error) from error
            self.finish(message)

    def _fail(self, error: BaseException) -> None:
        # Only the first error counts: the others follow from it.
        if self._error is None and not self._ended.is_set():
            self._error = error
            self._stirred.set()
            self._handles.give_up(error)
            if self._runner is not None and self._closing is None:
                self._closing = asyncio.ensure_future(self._close(self._runner))

    async def _blocking(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
