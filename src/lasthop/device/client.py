"""A device on asyncio: it dials, stays in touch, hands messages over and sends them.

    async with Device("tcps://gateway:7300", app="shop", name="phone-1", token="...") as device:
        async for message in device.messages():
            print(message.text)

What decides is in `session`, what is durable in the inbox, the connection in `contact`; this module
is the application's view of them.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random as randomness
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

import msgspec

from lasthop.clock import SECOND, Clock, Micros
from lasthop.decision.heartbeat import Networks
from lasthop.device.api.group_api import GroupApi
from lasthop.device.api.message_api import MessageApi
from lasthop.device.api.preference_api import PreferenceApi
from lasthop.device.api.service_api import ServiceApi
from lasthop.device.api.stream_api import StreamApi
from lasthop.device.api.topic_api import TopicApi
from lasthop.device.clock import DeviceClock
from lasthop.device.contact import Contact
from lasthop.device.heartbeats import MEMORY, Heartbeats
from lasthop.device.inbox import Inbox
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.message import Message
from lasthop.device.preferences.sending_preferences import NO_PREFERENCES
from lasthop.device.probing import Pause, pause
from lasthop.device.retry import Backoff
from lasthop.device.runner import HandlerFailed, SessionRunner, Transactional, TurnOutcome
from lasthop.device.session import DeviceSession
from lasthop.device.terms import DeviceTerms
from lasthop.device.turns import Turns
from lasthop.errors import Conflict, StoreError
from lasthop.transport.address import GatewayAddress, parse
from lasthop.transport.encryption import insist

if TYPE_CHECKING:
    from lasthop.device.exchange.switchboard import ExchangeSwitchboard

T = TypeVar("T")

LONGEST_SLEEP = 60.0
"""Seconds: deadlines are by a clock that can be set or sleep with the machine."""

Callback: TypeAlias = Callable[[Message], Awaitable[None] | None]


class Device(MessageApi, TopicApi, GroupApi, ServiceApi, StreamApi, PreferenceApi):
    """One device. Messages wait in its inbox until the application is done with them."""

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
        pause: Pause = pause,
    ) -> None:
        """`inbox` is a file, or an inbox; without one nothing outlives this object. `link` and
        `network` tell the gateway how the device is connected (wifi, mno; the operator, the SSID).
        `tls` replaces the default context, which trusts what the system trusts; with `enc` the
        device speaks over encrypted links to a gateway that it has checked, or not at all. `terms`
        has the limits; its app, name and token are those given here. With `learn_heartbeat` the
        device finds out, on extra connections, how seldom it may ping."""
        super().__init__()
        base = terms or DeviceTerms(app=app, name=name)
        self._terms = msgspec.structs.replace(base, app=app, name=name, token=token)
        self._enc = enc
        self._tls = tls
        self._address = self._parse(url)
        self._place = inbox
        self._link = link
        self._network = network
        self._clock = clock or DeviceClock()
        self._backoff = backoff or Backoff(random=random)
        self._learns = learn_heartbeat
        self._pause = pause
        self._thread: ThreadPoolExecutor | None = None
        self._ready: deque[Message] = deque()
        self._stirred = asyncio.Event()
        self._consumer: str | None = None
        self._closing: asyncio.Future[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._expiry_due: Micros | None = None
        self.switchboard: ExchangeSwitchboard | None = None
        """Who sorts the messages, once an exchange needs it."""

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
        """Open the inbox and start to dial; it does not wait for the gateway."""
        if self._runner is not None:
            raise Conflict("the device is open already")
        inbox, threaded = self._place, True
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
            self._address,
            clock=self._clock,
            tls=self._tls,
            backoff=self._backoff,
            link=self._link,
            network=self._network,
            heartbeats=heartbeats,
        )
        self._codec.on_link_spent = self._contact.spent
        if self._runner.session.preferences.preferences != NO_PREFERENCES:
            self._contact.prefer(self._runner.session.preferences.preferences)
        self.background(self._contact.run())
        if self._learns:
            self.background(heartbeats.learn(self._contact))

    async def close(self) -> None:
        """Make everything durable, say goodbye, and let go of the inbox."""
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
        await self._contact.close()
        await self._turns.idle()
        closed = self._error or Conflict("the device is closed")
        self._turns.end(closed)
        self._codec.give_up(closed)
        try:
            await self._blocking(runner.close)
        except StoreError:
            if self._error is None:
                raise
        finally:
            if self._thread is not None:
                self._thread.shutdown()

    async def run(self) -> None:
        """Until the device is closed; raises what ended it."""
        await self._ended.wait()
        await self.close()
        if self._error is not None:
            raise self._error

    # Contact.

    @property
    def problem(self) -> str:
        """Why there is no contact, in words."""
        return self._contact.problem

    @property
    def damaged(self) -> int:
        """How many links have ended because what came over them could not be understood."""
        return self._contact.damaged

    async def contact(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Until there is contact. Raises what ended the device, or TimeoutError."""
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

    def moved(self, *, link: str | None, network: str | None = None) -> None:
        """The device is on another network now: dial at once, over that."""
        self._contact.link_label = link
        self._contact.network = network
        self._contact.reconnect()

    async def join(
        self, url: str | None = None, *, link: str | None = None, network: str | None = None
    ) -> None:
        """Open one more channel beside those that are there, and speak over it. What the gateway
        sends may come over any of them, and is in order all the same. Raises Conflict when there
        is no contact, or the gateway does not grant it."""
        self.opened()
        await self._contact.join(self._parse(url) if url is not None else None, link, network)

    async def switch(
        self, url: str | None = None, *, link: str | None = None, network: str | None = None
    ) -> None:
        """Go over to another channel: the old ones end when the new one is there, so nothing waits
        and nothing that was acknowledged is sent again."""
        await self.join(url, link=link, network=network)
        self._contact.link_label, self._contact.network = link, network
        if url is not None:
            self._contact.address = self._parse(url)
        self._contact.leave(but=1)

    @property
    def links(self) -> tuple[str, ...]:
        """By which links there is contact; the gateway is spoken to over the last."""
        return self._contact.labels

    @property
    def channels(self) -> int:
        """Over how many channels there is contact."""
        return self._contact.links

    @property
    def closed_links(self) -> dict[str, Micros]:
        """Links that have reached a limit of ours, and until when they stay closed."""
        now = self._clock.now()
        return {link: until for link, until in self._contact.closed.items() if until > now}

    # Messages for the application. One of these three ways at a time.

    async def messages(self, *, automatic: bool = True) -> AsyncGenerator[Message, None]:
        """Messages in order. Each is done when the next one is asked for; if the loop is left
        before, it comes again. With `automatic` off only `done` finishes a message."""
        self._claim("messages()")
        try:
            while (message := await self._next()) is not None:
                yield message
                if automatic:
                    self.finish(message)
        finally:
            self._consumer = None

    def on_message(self, callback: Callback) -> Callback:
        """Call this, a function or a coroutine function, with every message in order; the message
        is done when it returns. Usable as a decorator."""
        self._claim("on_message")
        self.background(self._call(callback))
        return callback

    def transactional(self, handler: Transactional) -> Transactional:
        """Call this with every message and a transaction: what it does in the transaction, and that
        the message is done, become durable together, exactly once. Usable as a decorator.

        With an inbox on disk it runs in the inbox's thread, so it must not touch asyncio. When it
        raises, its work is undone and the device ends.
        """
        self._claim("transactional")
        runner, waiting = self.opened(), list(self._ready)
        self._ready.clear()

        def install(session: DeviceSession, _now: int) -> None:
            session.put_back(waiting)
            runner.handler = handler

        self._turns.post(install)
        return handler

    def finish(self, message: Message) -> None:
        """The application is done with a message; that becomes durable before long."""
        self._turns.post(lambda session, _now: session.finished(message))

    def lapse(self, message: Message) -> None:
        """The application had not looked at a message when its deadline passed."""
        self._turns.post(lambda session, _now: session.lapsed(message))

    async def done(self, message: Message) -> None:
        """The application is done with a message; returns when that is durable."""
        await self._turns.ask(lambda session, _now: session.finished(message))

    # Within.

    def _parse(self, url: str) -> GatewayAddress:
        address = parse(url)
        if self._enc:
            insist(address, self._tls)
        return address

    def _carry_out(self, outcome: TurnOutcome) -> None:
        for session_event in outcome.session_events:
            self._codec.tell(session_event)
        if self._codec.unclaimed:
            # Shown, and nobody is there to see it any more: the application gets it as a message.
            self._ready += self._codec.unclaimed
            self._codec.unclaimed = []
            self._stirred.set()
        self._watch_expiry(outcome.next_expiry)
        if outcome.ready:
            self._ready += outcome.ready
            self._stirred.set()
        self._contact.send(outcome.frames, outcome.routed)
        if outcome.stuck:
            self._contact.begin_anew()
        if outcome.more and self._turns.room:
            self._turns.nudge()
        if outcome.fault is not None:
            self._contact.fail(outcome.fault)
        if outcome.failure is not None:
            self._fail(outcome.failure)

    def _watch_expiry(self, due: Micros | None) -> None:
        """What is kept unread past its deadline is let go, and the gateway hears of it."""
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
        # Every turn decides about what waits to be sent.
        self._turns.post(lambda session, now: session.expire(now))

    def _claim(self, consumer: str) -> None:
        self.opened()
        if self._consumer is not None:
            raise Conflict("messages go to one place only", taken=self._consumer, wanted=consumer)
        self._consumer = consumer

    async def _next(self) -> Message | None:
        while True:
            if self._error is not None:
                raise self._error
            if self._ended.is_set():
                return None
            if self._ready:
                message = self._ready.popleft()
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
        """The device cannot go on."""
        if self._error is None and not self._ended.is_set():
            self._error = error
            self._stirred.set()
            self._codec.give_up(error)
            if self._runner is not None and self._closing is None:
                self._closing = asyncio.ensure_future(self._close(self._runner))

    async def _blocking(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
