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
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, Unpack

import msgspec

from lasthop.clock import SECOND, Clock, Micros
from lasthop.decision.budgets import Meter
from lasthop.decision.heartbeat import Networks
from lasthop.decision.preferences import Preferences
from lasthop.device import compose
from lasthop.device.clock import DeviceClock
from lasthop.device.compose import Draft, Options, Wishes
from lasthop.device.contact import Contact
from lasthop.device.correspondence import Claim, Correspondence
from lasthop.device.desk import Desk, HandlerFailed, Outcome, Transactional
from lasthop.device.explanation import Explanation
from lasthop.device.handle import MessageHandle, Settlement
from lasthop.device.happenings import LinkSpent
from lasthop.device.heartbeats import MEMORY, Heartbeats
from lasthop.device.inbox import Inbox
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.message import Message, Refusal
from lasthop.device.probing import Pause, pause
from lasthop.device.requests import Expectation, Gathered
from lasthop.device.retry import Backoff
from lasthop.device.session import DeviceSession
from lasthop.device.steering import NO_WISHES
from lasthop.device.streams import IncomingStream, OutgoingStream
from lasthop.device.terms import Terms
from lasthop.device.turns import Turns
from lasthop.errors import Conflict, StoreError
from lasthop.transport.address import Address, parse
from lasthop.transport.encryption import insist
from lasthop.wire.hop.services import Offers, Question, Service, decode_offers

if TYPE_CHECKING:
    from lasthop.device.exchange.switchboard import Switchboard

T = TypeVar("T")

LONGEST_SLEEP = 60.0
"""Seconds: deadlines are by a clock that can be set or sleep with the machine."""

Callback: TypeAlias = Callable[[Message], Awaitable[None] | None]


class Device:
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
        terms: Terms | None = None,
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
        base = terms or Terms(app=app, name=name)
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
        self._desk: Desk | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._ready: deque[Message] = deque()
        self._stirred = asyncio.Event()
        self._letters = Correspondence()
        self._consumer: str | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self._ended = asyncio.Event()
        self._closing: asyncio.Future[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._expiry_due: Micros | None = None
        self._contact: Contact
        self._turns: Turns
        self.switchboard: Switchboard | None = None
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
        if self._desk is not None:
            raise Conflict("the device is open already")
        inbox, threaded = self._place, True
        if inbox is None or isinstance(inbox, MemoryInbox):
            inbox, threaded = inbox or MemoryInbox(), False
        elif isinstance(inbox, str | os.PathLike):
            inbox = await asyncio.to_thread(SqliteInbox, inbox)
        held = await asyncio.to_thread(inbox.load)
        if threaded:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="lasthop-inbox")
        self._desk = Desk(DeviceSession(self._terms, held), inbox)
        self._turns = Turns(
            self._desk,
            clock=self._clock,
            carry_out=self._carry_out,
            failed=self._fail,
            thread=self._thread,
        )
        networks = Networks.load(await self._blocking(partial(self._desk.kept, MEMORY)))
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
        if self._desk.session.wishes != NO_WISHES:
            self._contact.prefer(self._desk.session.wishes)
        self._start(self._contact.run())
        if self._learns:
            self._start(heartbeats.learn(self._contact))

    async def close(self) -> None:
        """Make everything durable, say goodbye, and let go of the inbox."""
        if self._desk is None:
            return
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close(self._desk))
        await asyncio.shield(self._closing)

    async def _close(self, desk: Desk) -> None:
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
        self._letters.give_up(closed)
        try:
            await self._blocking(desk.close)
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
    def connected(self) -> bool:
        """Whether the gateway has welcomed this device and is still there."""
        return self._contact.there

    @property
    def problem(self) -> str:
        """Why there is no contact, in words."""
        return self._contact.problem

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
        self._opened()
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

    async def prefer(
        self, wishes: Preferences, *, sending: Preferences | None = None
    ) -> MessageHandle:
        """Say which links to use, when not to be disturbed, and what may be spent. The gateway
        keeps to it for what it sends us, and so do we for what we send, in this life and later
        ones; each counts what it sends itself. With `sending` that is wished for otherwise."""
        ours = wishes if sending is None else sending
        draft = compose.preferences(wishes)

        def act(session: DeviceSession, now: Micros) -> int:
            key = draft.queue(session, now)
            session.prefer(ours)
            return key

        handle = await self._queue(act)
        self._contact.prefer(ours)
        return handle

    async def explain(self, message: MessageHandle | str) -> Explanation | None:
        """Why a message that we sent, by its handle or its id, went over a link or waits. None:
        without wishes nothing is decided, and what was decided long ago is forgotten."""
        key = message.key if isinstance(message, MessageHandle) else int(message, 16)
        found: Explanation | None = await self.do(lambda session, _now: session.explain(key))
        return found

    async def held_back(self) -> list[Explanation]:
        """Messages that we sent and that wait for a link or a limit, the oldest first."""
        found: list[Explanation] = await self.do(lambda session, _now: session.held_back())
        return found

    async def spending(self) -> list[Meter]:
        """What is used of each limit on what we send, in its present period."""
        meters: list[Meter] = await self.do(lambda session, now: session.spending(now))
        return meters

    def on_links_wanted(self, callback: Callable[[tuple[str, ...]], None]) -> None:
        """Call this with links, the best first, when messages wait for one of them to come up."""
        self._letters.on_links_wanted = callback

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
        self._start(self._call(callback))
        return callback

    def transactional(self, handler: Transactional) -> Transactional:
        """Call this with every message and a transaction: what it does in the transaction, and that
        the message is done, become durable together, exactly once. Usable as a decorator.

        With an inbox on disk it runs in the inbox's thread, so it must not touch asyncio. When it
        raises, its work is undone and the device ends.
        """
        self._claim("transactional")
        desk, waiting = self._opened(), list(self._ready)
        self._ready.clear()

        def install(session: DeviceSession, _now: int) -> None:
            session.put_back(waiting)
            desk.handler = handler

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

    # Messages from the application.

    def on_refused(self, callback: Callable[[str, Refusal], None]) -> None:
        """Call this with the id and the reason when the gateway refuses a message that nobody here
        holds a handle of."""
        self._letters.on_refused = callback

    async def send(
        self, target: str, body: bytes | str, **options: Unpack[Options]
    ) -> MessageHandle:
        """Send to `device:NAME`, `user:NAME`, `topic:NAME`, `service:NAME`, `group:NAME`,
        `queue:NAME` or `app:`. Returns when the message is durable here; the handle tells the
        rest."""
        return await self._send(compose.message(target, body, **options))

    async def publish(
        self, topic: str, body: bytes | str, **options: Unpack[Options]
    ) -> MessageHandle:
        """Send to everyone who has subscribed to a topic."""
        return await self._send(compose.message(f"topic:{topic}", body, **options))

    async def request(
        self,
        target: str,
        body: bytes | str,
        *,
        timeout: float,  # noqa: ASYNC109
        **options: Unpack[Options],
    ) -> Message:
        """Send, and wait for the answer: there is one, or a TimeoutError, never both. Raises
        MessageRefused when the gateway does not take it."""
        within = round(timeout * SECOND)
        draft = compose.message(target, body, reply_within=within, **options)
        answer: Message = await (await self.ask(draft))[1]
        return answer

    async def gather(
        self,
        target: str,
        body: bytes | str,
        *,
        timeout: float,  # noqa: ASYNC109
        most: int | None = None,
        **options: Unpack[Options],
    ) -> Gathered:
        """Ask everyone of a topic, a user or the app, and wait until all have answered, or `most`
        have, or the time is up. Each device counts once; `missing` names those that have not
        answered."""
        expects = Expectation(gather=True, most=most)
        within = round(timeout * SECOND)
        draft = compose.message(target, body, reply_within=within, expects=expects, **options)
        gathered: Gathered = await (await self.ask(draft))[1]
        return gathered

    async def ask(self, draft: Draft) -> tuple[MessageHandle, asyncio.Future[Any]]:
        """Send a request (see `compose`). The future gets its one outcome; cancelled, it lets go
        whatever comes."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        handle = await self._send(draft, future)
        key = handle.key
        # The session's own clock can be set back; nobody waits longer for that.
        seconds = (draft.headers.reply_within or 0) / 1000
        alarm = loop.call_later(seconds, self._turns.post, lambda session, _: session.time_out(key))

        def over(future: asyncio.Future[Any]) -> None:
            alarm.cancel()
            if future.cancelled():
                self._letters.forget_answer(key)
                self._turns.post(lambda session, _now: session.give_up(key))

        future.add_done_callback(over)
        return handle, future

    async def post(self, draft: Draft) -> MessageHandle:
        """Send what `compose` has made."""
        return await self._send(draft)

    async def reply(
        self, message: Message, body: bytes | str, **options: Unpack[Options]
    ) -> MessageHandle:
        """Answer a message. Raises Expired when nobody waits any more."""
        return await self._send(compose.reply(message, body, self._clock.now(), **options))

    # Streams, and bodies that are pulled.

    async def open_stream(self, target: str, **options: Unpack[Options]) -> OutgoingStream:
        """Open a stream to `device:NAME`, or to `publisher:`, where it is fetched over REST.
        Returns when that is durable here."""
        draft = compose.stream(target, **options)
        key: int = await self.do(lambda session, now: session.open_stream(now, draft.headers))
        return OutgoingStream(self, key)

    async def outgoing_streams(self) -> list[OutgoingStream]:
        """Streams of ours that the gateway may not have to the end; after a crash they go on where
        they are (`position`)."""
        found = await self.do(lambda session, _now: session.transfers.outgoing())
        return [
            OutgoingStream(self, key, state.position)
            for key, state in found
            if state.size < 0 and not state.failed
        ]

    def stream(self, message: Message | int) -> IncomingStream:
        """The stream that a message has opened, by the message or its key."""
        return IncomingStream(self, message if isinstance(message, int) else message.key)

    async def incoming_streams(self) -> list[IncomingStream]:
        """Streams that the application has not had to the end."""
        keys = await self.do(lambda session, _now: session.transfers.incoming())
        return [IncomingStream(self, key) for key in keys]

    def on_stream(self, reader: Callable[[IncomingStream], Awaitable[None]]) -> None:
        """Let this coroutine function read every stream that comes in, each in a task of its own;
        also those that an earlier life has not had to the end."""
        self._opened()
        started: set[int] = set()

        async def read(key: int) -> None:
            if key in await self.do(lambda session, _now: session.transfers.incoming()):
                await reader(self.stream(key))

        def begin(key: int) -> None:
            if key not in started:
                started.add(key)
                self._start(read(key))

        async def begin_all() -> None:
            for stream in await self.incoming_streams():
                begin(stream.key)

        self._letters.on_stream = begin
        self._start(begin_all())

    async def fetch(self, message: Message) -> bytes:
        """The body of a message; if it was left with the gateway, it is pulled now. Ask before the
        message is done. Raises Conflict when it is not to be had any more."""
        if message.pull_size is None:
            return message.body
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.letters.pulling(message.key, answer)
        body: bytes | None = await self.do(lambda session, now: session.pull(message.key, now))
        return body if body is not None else await answer

    @property
    def letters(self) -> Correspondence:
        """Who waits for what."""
        return self._letters

    async def do(self, act: Callable[[DeviceSession, int], Any]) -> Any:
        """Let something happen in the session, and return what it returned when it is durable."""
        self._opened()
        return await self._turns.ask(act)

    async def subscribe(self, topic: str, **wishes: Unpack[Wishes]) -> MessageHandle:
        """Ask for what is published to a topic from now on. With wishes (`max`, `threshold`,
        `mode` ...) it is a ranked topic: see `read`."""
        return await self._send(compose.subscription(topic, on=True, **wishes))

    # Services.

    async def offer(self, service: Service) -> MessageHandle:
        """Let everyone of the app find a service of this device, and send it requests by
        `service:NAME`: until `withdraw`, or the device is removed."""
        return await self._send(compose.offer(service))

    async def withdraw(self, name: str) -> MessageHandle:
        """Offer it no longer."""
        return await self._send(compose.withdrawal(name))

    async def find(
        self,
        name: str = "",
        *,
        operation: str = "",
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> Offers:
        """The services of this name (and version: `pricing@2`), or with this operation, or all."""
        wanted = Question(name, operation)
        answer = await (await self.ask(compose.question(wanted, round(timeout * SECOND))))[1]
        return decode_offers(answer.body)

    def background(self, work: Awaitable[None]) -> None:
        """Run something for as long as the device lives; what it raises ends the device."""
        self._start(work)

    def now(self) -> Micros:
        """The time by the device's clock."""
        return self._clock.now()

    # Groups and queues.

    async def join_group(self, name: str) -> MessageHandle:
        """Belong to a group from now on."""
        return await self._send(compose.membership(f"group:{name}", on=True))

    async def leave_group(self, name: str) -> MessageHandle:
        """Belong to it no longer; what was sent to it before still comes."""
        return await self._send(compose.membership(f"group:{name}", on=False))

    async def consume(self, queue: str) -> MessageHandle:
        """Take messages from a queue, in turn with others who do. They come like any other; one
        that is not done in the queue's patience goes to somebody else."""
        return await self._send(compose.membership(f"queue:{queue}", on=True))

    async def stop_consuming(self, queue: str) -> MessageHandle:
        """Take no more from it."""
        return await self._send(compose.membership(f"queue:{queue}", on=False))

    async def claim(self, message: Message, *, timeout: float | None = None) -> Claim:  # noqa: ASYNC109
        """Ask to be the one who acts on a message of a group. The answer is final, and asking
        again, also after a crash, gets the same one. Raises MessageRefused when the message cannot
        be claimed, or TimeoutError; the claim may be granted all the same then: ask again."""
        draft = compose.claim(message)
        answer: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()
        asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def then(key: object) -> None:
            if isinstance(key, int):
                self._letters.claiming(key, answer)
                asked.set_result(key)
            elif not asked.done():
                assert isinstance(key, BaseException)
                asked.set_exception(key)

        self._opened()
        self._turns.post(draft.queue, then)
        key = await asked
        try:
            async with asyncio.timeout(timeout):
                return await answer
        finally:
            self._letters.stop_claiming(key)

    def on_settled(self, callback: Callable[[str, Settlement], None]) -> None:
        """Call this when it is decided what becomes of an atomic or claimable message of ours that
        nobody here holds a handle of."""
        self._letters.on_settled = callback

    # Ranked topics.

    async def read(
        self,
        topic: str,
        n: int | None = None,
        *,
        timeout: float = 5.0,  # noqa: ASYNC109
        automatic: bool = True,
    ) -> list[Message]:
        """The best `n` unread messages of a ranked topic, best first; without `n` as many as the
        subscription's Max allows.

        In contact these are the best that there are, here or at the gateway. Without contact, or
        when the gateway does not answer in time, the best of what is here. Each message is done
        when it is returned; with `automatic` off only `done` finishes it, and what was not done
        comes again after a crash, as one of the `messages`.
        """
        self._opened()
        messages: list[Message] | None = None
        if self.connected:
            messages = await self._look(topic, n, timeout)
        if messages is None:
            messages = await self._turns.ask(lambda session, now: session.read(topic, n, now))
        assert messages is not None
        if automatic:
            self._turns.post(lambda session, _now: session.finished(*messages))
        return messages

    async def _look(self, topic: str, n: int | None, seconds: float) -> list[Message] | None:
        """Ask the gateway; None if there was no answer, and nothing here has been read yet."""
        answer: asyncio.Future[list[Message]] = asyncio.get_running_loop().create_future()
        asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def then(key: object) -> None:
            if isinstance(key, int):
                self._letters.looking(key, answer)
                asked.set_result(key)
            elif not asked.done():
                assert isinstance(key, BaseException)
                asked.set_exception(key)

        self._turns.post(lambda session, now: session.look(topic, n, now), then)
        key = await asked
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(answer)
        except TimeoutError:
            instead: list[Message] | None = await self._turns.ask(
                lambda session, now: session.read_instead(key, topic, n, now)
            )
            return instead if instead is not None else await answer
        finally:
            self._letters.stop_looking(key)
            if not answer.done():
                self._turns.post(lambda session, _now: session.stop_looking(key))

    async def unread(self, topic: str) -> int:
        """How many messages of a ranked topic wait here to be read."""
        count = await self._turns.ask(lambda session, _now: session.unread(topic))
        assert isinstance(count, int)
        return count

    def on_retracted(self, callback: Callable[[str, bool], None]) -> None:
        """Call this with the id of a message of a ranked topic that is not worth reading any more,
        or of a message that somebody else has claimed, and with whether the application has had
        it: then what is shown of it is better removed. What it has not had is gone by itself."""
        self._letters.on_retracted = callback

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Call this with a topic whose publisher will send no more to it."""
        self._letters.on_withdrawn = callback

    async def unsubscribe(self, topic: str) -> MessageHandle:
        """Ask for no more of it."""
        return await self._send(compose.subscription(topic, on=False))

    async def report(self, **context: object) -> MessageHandle:
        """Say where the user is and what they do (`city="oslo"`, `activity="meeting"`):
        subscriptions that depend on it follow. It replaces the last report."""
        return await self.report_context(context)

    async def report_context(self, report: Mapping[str, object]) -> MessageHandle:
        """Say how the device is: battery, place, links. It replaces the last report."""
        return await self._send(compose.context(report))

    async def report_read(
        self,
        message: Message | None = None,
        *,
        topic: str | None = None,
        count: int = 1,
        queue_size: int = -1,
    ) -> MessageHandle:
        """Say that the user has read a message, or `count` of a topic of `queue_size` there."""
        draft = compose.read(read=message, topic=topic, count=count, queue_size=queue_size)
        return await self._send(draft)

    # Within.

    def _parse(self, url: str) -> Address:
        address = parse(url)
        if self._enc:
            insist(address, self._tls)
        return address

    async def _send(self, draft: Draft, answer: asyncio.Future[Any] | None = None) -> MessageHandle:
        return await self._queue(draft.queue, answer)

    async def _queue(
        self,
        act: Callable[[DeviceSession, Micros], int],
        answer: asyncio.Future[Any] | None = None,
    ) -> MessageHandle:
        """Let this queue something; returns when that is durable here."""
        self._opened()
        queued: asyncio.Future[MessageHandle] = asyncio.get_running_loop().create_future()

        def then(key: object) -> None:
            # At once, before anything is told of this key.
            if not isinstance(key, int):
                assert isinstance(key, BaseException)
                if not queued.done():
                    queued.set_exception(key)
                return
            handle = self._letters.queued(key, answer)
            if not queued.done():
                queued.set_result(handle)

        self._turns.post(act, then)
        return await queued

    def _carry_out(self, outcome: Outcome) -> None:
        for happening in outcome.happenings:
            self._letters.tell(happening)
            if isinstance(happening, LinkSpent):
                self._contact.spent(happening)
        if self._letters.unclaimed:
            # Shown, and nobody is there to see it any more: the application gets it as a message.
            self._ready += self._letters.unclaimed
            self._letters.unclaimed = []
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
        self._opened()
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

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """The device cannot go on."""
        if self._error is None and not self._ended.is_set():
            self._error = error
            self._stirred.set()
            self._letters.give_up(error)
            if self._desk is not None and self._closing is None:
                self._closing = asyncio.ensure_future(self._close(self._desk))

    def _opened(self) -> Desk:
        if self._error is not None:
            raise self._error
        if self._desk is None or self._ended.is_set():
            raise Conflict("the device is not open")
        return self._desk

    async def _blocking(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
