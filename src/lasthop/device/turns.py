"""Runs a desk's turns one after the other, in a thread of their own where the inbox is a disk.

While one turn is under way what happens is collected for the next: the slower the disk, the more
goes into one commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lasthop.clock import Clock
from lasthop.device.desk import Act, Desk, Outcome
from lasthop.errors import HopError
from lasthop.wire.hop.frames import Hello

Then = Callable[[Any], None]


class Turns:
    """The event loop's side of a desk."""

    def __init__(
        self,
        desk: Desk,
        *,
        clock: Clock,
        carry_out: Callable[[Outcome], None],
        failed: Callable[[BaseException], None],
        thread: ThreadPoolExecutor | None,
    ) -> None:
        """Without a thread turns are taken on the event loop, which they do not hold up."""
        self._desk = desk
        self._clock = clock
        self._carry_out = carry_out
        self._failed = failed
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._acts: list[tuple[Act, Then | None]] = []
        self._again = False
        self._turning: asyncio.Future[Outcome] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self.room = True
        """Whether the link takes more than a few bytes."""

    def post(self, act: Act, then: Then | None = None) -> None:
        """Let this happen in the next turn; `then` gets what it returned, or an exception."""
        self._acts.append((act, then))
        self.nudge()

    async def ask(self, act: Act) -> Any:
        """Let this happen, and return what it returned, or raise what it raised, when it is
        durable."""
        future: asyncio.Future[Any] = self._loop.create_future()

        def then(result: object) -> None:
            if future.done():
                return
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.post(act, then)
        return await future

    async def hello(self, link: str | None, network: str | None) -> Hello:
        """What to dial with."""
        hello = await self.ask(lambda _session, _now: self._desk.hello(link, network))
        assert isinstance(hello, Hello)
        return hello

    def nudge(self) -> None:
        """Take a turn, now or after the one that is under way."""
        self._again = True
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._turn)

    async def idle(self) -> None:
        """Until nothing is left to do."""
        await self._idle.wait()

    def _turn(self) -> None:
        if not self._again:
            self._idle.set()
            return
        self._again = False
        acts, self._acts = self._acts, []
        take = self._desk.turn
        arguments = ([act for act, _ in acts], self._clock.now())
        if self._thread is None:
            try:
                outcome = take(*arguments, room=self.room)
            except BaseException as error:
                self._stop(acts, error)
                return
            self._end(acts, outcome)
        else:
            turning = self._loop.run_in_executor(
                self._thread, lambda: take(*arguments, room=self.room)
            )
            turning.add_done_callback(lambda done: self._turned(acts, done))

    def _turned(self, acts: list[tuple[Act, Then | None]], turned: asyncio.Future[Outcome]) -> None:
        if turned.cancelled():
            self._stop(acts, asyncio.CancelledError())
            return
        error = turned.exception()
        if error is not None:
            self._stop(acts, error)
        else:
            self._end(acts, turned.result())

    def _end(self, acts: list[tuple[Act, Then | None]], outcome: Outcome) -> None:
        for (_, then), result in zip(acts, outcome.results, strict=True):
            if then is not None:
                then(result)
            elif isinstance(result, Exception) and not isinstance(result, HopError):
                self._failed(result)
        self._carry_out(outcome)
        self._loop.call_soon(self._turn)

    def _stop(self, acts: list[tuple[Act, Then | None]], error: BaseException) -> None:
        """The inbox failed in the middle of a turn: nobody knows what the session holds now."""
        for _, then in acts:
            if then is not None:
                then(error)
        self._failed(error)
        self._idle.set()
