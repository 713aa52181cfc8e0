"""The base of the device's API, with the parts that every subject uses: the session's turns, the
contact with the gateway, and the handles of messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from lasthop.clock import Clock, Micros
from lasthop.decision.preferences import Preferences
from lasthop.device.compose import Draft
from lasthop.device.contact import Contact
from lasthop.device.handle import MessageHandle
from lasthop.device.handle_table import HandleTable
from lasthop.device.runner import SessionRunner
from lasthop.device.session import DeviceSession
from lasthop.device.turns import Turns
from lasthop.errors import Conflict

T = TypeVar("T")


class DeviceApi:
    """The parts of a device that every subject of its API needs. `client` opens and closes them."""

    _clock: Clock
    _contact: Contact
    _turns: Turns

    def __init__(self) -> None:
        self._runner: SessionRunner | None = None
        self._handles = HandleTable()
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self._ended = asyncio.Event()

    async def do(self, act: Callable[[DeviceSession, int], Any]) -> Any:
        """Run `act` with the session and the time, and return its result when its changes are
        durable. Raises Conflict if the device is not open."""
        self.opened()
        return await self._turns.ask(act)

    def happen(self, act: Callable[[DeviceSession, int], Any]) -> None:
        """Run `act` with the session and the current time in the next turn, without waiting for its
        result."""
        self._turns.post(act)

    async def enqueue(
        self, act: Callable[[DeviceSession, Micros], int], note: Callable[[int], T]
    ) -> T:
        """Run `act`, which queues a message and returns its key; return when the message is durable
        on this device. `note` is called with the key before any event of the message is reported;
        its result is returned."""
        self.opened()
        queued: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def then(key: object) -> None:
            if isinstance(key, int):
                # The message is queued even if the caller was cancelled meanwhile.
                noted = note(key)
                if not queued.done():
                    queued.set_result(noted)
            elif not queued.done():
                assert isinstance(key, BaseException)
                queued.set_exception(key)

        self._turns.post(act, then)
        return await queued

    async def post(self, draft: Draft) -> MessageHandle:
        """Queue a draft made by `compose`; return its handle when the message is durable on this
        device."""
        return await self.enqueue(draft.queue, self.handles.queued)

    async def ask(self, draft: Draft) -> tuple[MessageHandle, asyncio.Future[Any]]:
        """Queue a request made by `compose`. The future gets the request's one outcome; cancelling
        it gives the request up, and a later answer is dropped."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        handle = await self.enqueue(draft.queue, lambda key: self.handles.queued(key, future))
        key = handle.key
        # The session's own clock can be set back; the caller must not wait longer because of that.
        seconds = (draft.headers.reply_within or 0) / 1000
        alarm = loop.call_later(
            seconds, self._turns.post, lambda session, _: session.requests.time_out(key)
        )

        def over(future: asyncio.Future[Any]) -> None:
            alarm.cancel()
            if future.cancelled():
                self._handles.forget_answer(key)
                self._turns.post(lambda session, _now: session.requests.give_up(key))

        future.add_done_callback(over)
        return handle, future

    def opened(self) -> SessionRunner:
        """Return the open device's inbox and session. Raises the error that ended the device, or
        Conflict if it is not open."""
        if self._error is not None:
            raise self._error
        if self._runner is None or self._ended.is_set():
            raise Conflict("the device is not open")
        return self._runner

    def background(self, work: Awaitable[None]) -> None:
        """Run an awaitable until it ends or the device is closed; an exception that it raises ends
        the device."""
        task = asyncio.ensure_future(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Close the device because of an error that it cannot recover from."""
        raise NotImplementedError

    def speak_by(self, preferences: Preferences) -> None:
        """Send over the best link according to these preferences."""
        self._contact.prefer(preferences)

    def now(self) -> Micros:
        """Return the current time of the device's clock, in microseconds."""
        return self._clock.now()

    @property
    def handles(self) -> HandleTable:
        """The table of handles and of calls that wait for an answer."""
        return self._handles

    @property
    def connected(self) -> bool:
        """Whether the gateway has welcomed this device and the channel is still open."""
        return self._contact.there
