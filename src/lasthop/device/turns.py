"""Runs the turns of a session one after the other, in a thread of their own if the inbox is on
disk.

Acts that are posted during a turn are collected for the next: the slower the disk, the more goes
into one commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from lasthop.clock import Clock
from lasthop.device.runner import Act, SessionRunner, TurnOutcome
from lasthop.device.terms import DeviceTerms
from lasthop.errors import HopError
from lasthop.wire.hop.frames import Hello

log = logging.getLogger("lasthop.device")

Then = Callable[[Any], None]


class Turns:
    """The event loop's side of a session runner."""

    def __init__(
        self,
        runner: SessionRunner,
        *,
        clock: Clock,
        carry_out: Callable[[TurnOutcome], None],
        failed: Callable[[BaseException], None],
        thread: ThreadPoolExecutor | None,
    ) -> None:
        """Prepare to run turns; without a thread they run on the event loop, for an inbox that
        never blocks."""
        self._runner = runner
        self._clock = clock
        self._carry_out = carry_out
        self._failed = failed
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._acts: list[tuple[Act, Then | None]] = []
        self._again = False
        self._over: BaseException | None = None
        """The error because of which no more turns are taken; None while they are."""
        self._idle = asyncio.Event()
        self._idle.set()
        self.room = True
        """Whether the main link has room for more than a few bytes."""
        self.drained = True
        """Whether the last piece of a transfer has left the unsent buffer."""

    @property
    def terms(self) -> DeviceTerms:
        """The identity and limits of the device."""
        return self._runner.session.terms

    def keep(self, name: str, value: bytes) -> None:
        """Store a value that is not a message in the inbox; a failure is only logged."""

        def then(result: object) -> None:
            if isinstance(result, Exception):
                log.warning("%s could not be stored in the inbox: %s", name, result)

        self.post(lambda _session, _now: self._runner.keep(name, value), then)

    def post(self, act: Act, then: Then | None = None) -> None:
        """Run `act` in the next turn; `then` gets its result, or the exception."""
        if self._over is not None:
            if then is not None:
                then(self._over)
            return
        self._acts.append((act, then))
        self.nudge()

    async def ask(self, act: Act) -> Any:
        """Run `act` in the next turn; return its result, or raise its exception, when its changes
        are durable."""
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
        """Return the HELLO to dial with, when all changes are durable."""
        hello = await self.ask(lambda _session, _now: self._runner.hello(link, network))
        assert isinstance(hello, Hello)
        return hello

    def nudge(self) -> None:
        """Run a turn now, or after the turn that is running."""
        self._again = True
        if self._idle.is_set() and self._over is None:
            self._idle.clear()
            self._loop.call_soon(self._turn)

    async def idle(self) -> None:
        """Wait until nothing is left to do."""
        await self._idle.wait()

    def end(self, why: BaseException) -> None:
        """Run no more turns; acts that still wait end with this error."""
        self._over = self._over or why
        acts, self._acts = self._acts, []
        for _, then in acts:
            if then is not None:
                then(why)
        self._idle.set()

    def _turn(self) -> None:
        if not self._again or self._over is not None:
            self._idle.set()
            return
        self._again = False
        acts, self._acts = self._acts, []
        happened = [act for act, _ in acts]
        take = partial(
            self._runner.turn, happened, self._clock.now(), room=self.room, piece=self.drained
        )
        if self._thread is not None:
            turning = self._loop.run_in_executor(self._thread, take)
            turning.add_done_callback(lambda turned: self._turned(acts, turned))
            return
        try:
            outcome = take()
        except Exception as error:
            self._stop(acts, error)
        else:
            self._end(acts, outcome)

    def _turned(
        self, acts: list[tuple[Act, Then | None]], turned: asyncio.Future[TurnOutcome]
    ) -> None:
        error = turned.exception()
        if error is not None:
            self._stop(acts, error)
        else:
            self._end(acts, turned.result())

    def _end(self, acts: list[tuple[Act, Then | None]], outcome: TurnOutcome) -> None:
        for (_, then), result in zip(acts, outcome.results, strict=True):
            if then is not None:
                then(result)
            elif isinstance(result, Exception) and not isinstance(result, HopError):
                self._failed(result)
        self._carry_out(outcome)
        self._loop.call_soon(self._turn)

    def _stop(self, acts: list[tuple[Act, Then | None]], error: BaseException) -> None:
        """End after the inbox failed in the middle of a turn: the session may be ahead of the
        inbox."""
        self._acts = acts + self._acts
        self.end(error)
        self._failed(error)
