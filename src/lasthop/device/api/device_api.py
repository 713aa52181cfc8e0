"""What all of a device's API stands on: its turns, its contact, and who waits for what."""

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
    """A device, as far as what it offers needs it. `client` opens and closes it."""

    _clock: Clock
    _contact: Contact
    _turns: Turns

    def __init__(self) -> None:
        self._runner: SessionRunner | None = None
        self._codec = HandleTable()
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self._ended = asyncio.Event()

    async def do(self, act: Callable[[DeviceSession, int], Any]) -> Any:
        """Let something happen in the session, and return what it returned when it is durable."""
        self.opened()
        return await self._turns.ask(act)

    def happen(self, act: Callable[[DeviceSession, int], Any]) -> None:
        """Let something happen in the session before long."""
        self._turns.post(act)

    async def enqueue(
        self, act: Callable[[DeviceSession, Micros], int], note: Callable[[int], T]
    ) -> T:
        """Let this queue something; returns when that is durable here. `note` gets the key at once,
        before anything is told of it, and makes the result of it."""
        self.opened()
        queued: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def then(key: object) -> None:
            if isinstance(key, int):
                noted = note(key)
                if not queued.done():
                    queued.set_result(noted)
            elif not queued.done():
                assert isinstance(key, BaseException)
                queued.set_exception(key)

        self._turns.post(act, then)
        return await queued

    async def post(self, draft: Draft) -> MessageHandle:
        """Send what `compose` has made."""
        return await self.enqueue(draft.queue, self.codec.queued)

    async def ask(self, draft: Draft) -> tuple[MessageHandle, asyncio.Future[Any]]:
        """Send a request (see `compose`). The future gets its one outcome; cancelled, it lets go
        whatever comes."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        handle = await self.enqueue(draft.queue, lambda key: self.codec.queued(key, future))
        key = handle.key
        # The session's own clock can be set back; nobody waits longer for that.
        seconds = (draft.headers.reply_within or 0) / 1000
        alarm = loop.call_later(
            seconds, self._turns.post, lambda session, _: session.requests.time_out(key)
        )

        def over(future: asyncio.Future[Any]) -> None:
            alarm.cancel()
            if future.cancelled():
                self._codec.forget_answer(key)
                self._turns.post(lambda session, _now: session.requests.give_up(key))

        future.add_done_callback(over)
        return handle, future

    def opened(self) -> SessionRunner:
        """The open device's inbox and session. Raises what ended the device, or Conflict."""
        if self._error is not None:
            raise self._error
        if self._runner is None or self._ended.is_set():
            raise Conflict("the device is not open")
        return self._runner

    def background(self, work: Awaitable[None]) -> None:
        """Run something for as long as the device lives; what it raises ends the device."""
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
        raise NotImplementedError

    def speak_by(self, preferences: Preferences) -> None:
        """Speak over the link that these make the best one."""
        self._contact.prefer(preferences)

    def now(self) -> Micros:
        """The time by the device's clock."""
        return self._clock.now()

    @property
    def codec(self) -> HandleTable:
        """Who waits for what."""
        return self._codec

    @property
    def connected(self) -> bool:
        """Whether the gateway has welcomed this device and is still there."""
        return self._contact.there
