"""Supervises one app's worker: starts it, gives it the gateway's inputs, and replaces it when it
dies, hangs, or new code is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol

import structlog

from lasthop.core.effects import Consult
from lasthop.errors import Conflict
from lasthop.runtime.surrogates.duty import Duty
from lasthop.runtime.surrogates.process import CannotStart, WorkerEnded, WorkerProcess
from lasthop.surrogate.frames import Done, FrameTooLong, InputFailed, Report, Work
from lasthop.surrogate.mail import Verdict

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
"""The longest pause, in seconds, before a worker that died is started again: the pause is doubled
each time, and reset after a successful input."""

MOST_STARTS = 3
"""The number of failed starts in a row after which the worker is not started again until an
administrator reloads it."""

log = structlog.get_logger()


class ConsultGateway(Protocol):
    """The gateway, as the supervisors of surrogates use it."""

    def consulted(self, app: str, number: int, verdict: Verdict) -> str | None:
        """Apply a surrogate's verdict; return the reason if the verdict is refused, else None."""
        ...

    def consult_failed(self, app: str, number: int, reason: str, *, hopeless: bool) -> None:
        """Report that an input failed, and that the unanswered inputs after it failed with it."""
        ...

    def surrogate_state(self, app: str) -> dict[str, bytes]:
        """Return the committed state of the app's surrogate."""
        ...


class WorkerSupervisor:
    """Keeps one app's worker running, and gives it one consultation at a time."""

    def __init__(self, duty: Duty, gateway: ConsultGateway, clock: Callable[[], float]) -> None:
        self._duty = duty
        self._app = duty.launch.app
        self._gateway = gateway
        self._clock = clock
        self._worker: WorkerProcess | None = None
        self._successor: WorkerProcess | None = None
        self._given: Consult | None = None
        self._at = 0
        self._outdated = False
        """Whether the worker's state differs from the committed one."""
        self._busy = False
        """Whether the worker has been given what is in `_given`."""
        self._deadline: asyncio.TimerHandle | None = None
        self._pause = FIRST_PAUSE
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._hung: str | None = None
        """The reason why the worker is being killed, until it has ended."""
        self._reloading = asyncio.Lock()
        self._failed_starts = 0
        self.broken: str | None = None
        """The reason why no worker is started before the next reload; None while a worker can
        run."""
        self.loaded_at: float | None = None
        self.restarts = 0
        self.last_failure = ""

    def start(self) -> None:
        """Start the supervisor, which then starts the worker."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End the worker. After the next start the gateway gives the worker its unfinished input
        again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._rest()
        for worker in (self._worker, self._successor):
            if worker is not None:
                await worker.end()
        self._worker = self._successor = None

    @property
    def state(self) -> Literal["starting", "ready", "broken"]:
        """The state of the surrogate, as administrators see it."""
        if self.broken is not None:
            return "broken"
        return "ready" if self._worker or self._successor else "starting"

    @property
    def pid(self) -> int | None:
        """The worker's process id, or None."""
        return None if self._worker is None else self._worker.pid

    def consult(self, consult: Consult) -> None:
        """Pass a question of the gateway to the worker; the gateway asks one question at a time."""
        self._given, self._at, self._busy = consult, 0, False
        if self._fit:
            self._give()  # Not in the next turn of the loop, because a message waits.
        else:
            self._woken.set()

    @property
    def _fit(self) -> bool:
        """Whether there is a worker that accepts work now."""
        worker = self._worker
        if worker is None or worker.gone is not None or not worker.serving:
            return False
        return not self._outdated and self._successor is None and self._hung is None

    def _give(self) -> None:
        assert self._given is not None
        assert self._worker is not None
        try:
            self._worker.send(Work(self._given.mails))
        except FrameTooLong as error:
            self._give_back(str(error), hopeless=True)
            return
        self._busy = True
        self._watch()

    async def reload(self) -> None:
        """Load the class again; new code takes over between two inputs. If the class cannot be
        loaded, the old worker stays, and `Conflict` says why."""
        async with self._reloading:
            try:
                worker = await WorkerProcess.start(self._duty.launch)
                try:
                    await worker.begin(self._gateway.surrogate_state(self._app), self._duty.state)
                except BaseException:
                    await worker.end()
                    raise
            except (CannotStart, WorkerEnded) as error:
                raise Conflict(f"the surrogate of {self._app} cannot be loaded: {error}") from None
            if self._successor is not None:
                await self._successor.end()
            self._successor = worker
            self.broken = None
            self._woken.set()

    async def _run(self) -> None:
        """Check the worker whenever something has changed, and do what is due."""
        while True:
            try:
                await self._look()
            except WorkerEnded as error:
                await self._lost(str(error))
            except CannotStart as error:
                await self._cannot(str(error))
            await self._woken.wait()
            self._woken.clear()

    async def _look(self) -> None:
        if self._successor is not None and not self._busy:
            await self._take_over()
        if self.broken is not None:
            self._hopeless()
            return
        if self._worker is None:
            await self._hire()
        worker = self._worker
        assert worker is not None
        if worker.gone is not None:
            raise WorkerEnded(worker.gone)
        if self._given is None or self._busy or self._hung is not None:
            return
        if self._outdated:
            await worker.begin(self._gateway.surrogate_state(self._app), self._duty.state)
            self._outdated = False
        self._give()

    async def _hire(self) -> None:
        try:
            worker = await WorkerProcess.start(self._duty.launch)
        except WorkerEnded as error:
            self._failed_starts += 1
            if self._failed_starts >= MOST_STARTS:
                raise CannotStart(
                    f"the surrogate's worker ends while it is loaded: {error}"
                ) from None
            raise
        self._failed_starts = 0
        self._employ(worker)
        await worker.begin(self._gateway.surrogate_state(self._app), self._duty.state)
        log.info("surrogate loaded", app=self._app, pid=worker.pid)

    def _employ(self, worker: WorkerProcess) -> None:
        self._worker = worker
        self._outdated = False
        self._hung = None
        self.loaded_at = self._clock()
        worker.reported = self._reported
        worker.ended = lambda how: self._woken.set()

    async def _take_over(self) -> None:
        successor, self._successor = self._successor, None
        assert successor is not None
        old = self._worker
        self._employ(successor)
        self._outdated = True  # The state may have changed since this worker was started.
        if old is not None:
            await old.end()
        log.info("surrogate reloaded", app=self._app, pid=successor.pid)

    def _reported(self, report: Report) -> None:
        """Handle the worker's report on the input that it was given."""
        given = self._given
        if given is None or not self._busy or not isinstance(report, Done | InputFailed):
            return
        if report.number != given.mails[self._at].number:
            self._end("it broke the protocol")
            return
        if isinstance(report, InputFailed):
            log.warning(
                "surrogate failed", app=self._app, reason=report.reason, detail=report.detail
            )
            self._give_back(report.reason)
            return
        self._pause = FIRST_PAUSE
        self._at += 1
        done = self._at == len(given.mails)
        if done:
            self._rest()
        else:
            self._watch()
        refused = self._gateway.consulted(self._app, report.number, report.verdict)
        if refused is not None:
            log.warning("surrogate refused", app=self._app, reason=refused)
            self.last_failure = refused
            self._rest()
            self._end("its verdict was refused")
        self._woken.set()

    def _give_back(self, reason: str, *, hopeless: bool = False) -> None:
        """Tell the gateway that the present input failed."""
        given, at = self._given, self._at
        self._rest()
        if given is not None:
            self.last_failure = reason
            self._gateway.consult_failed(
                self._app, given.mails[at].number, reason, hopeless=hopeless
            )
        self._woken.set()

    def _rest(self) -> None:
        self._given, self._busy = None, False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _watch(self) -> None:
        """Start the timer for an input that has begun."""
        if self._deadline is not None:
            self._deadline.cancel()
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._duty.seconds, self._too_long)

    def _too_long(self) -> None:
        self._deadline = None
        self._end(f"it took longer than {self._duty.seconds:g} s")

    def _end(self, why: str) -> None:
        """Kill the worker, for this reason."""
        if self._worker is not None:
            self._hung = why
            self._worker.kill()

    async def _lost(self, how: str) -> None:
        """Fail the input of a worker that has ended, and start another worker after a pause."""
        how, self._hung = self._hung or how, None
        worker, self._worker = self._worker, None
        self.restarts += 1
        log.warning("surrogate ended", app=self._app, reason=how, again_in=self._pause)
        if worker is not None:
            await worker.end()
        if self._busy:
            self._give_back(f"the worker ended: {how}")
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        await asyncio.sleep(pause)
        self._woken.set()

    async def _cannot(self, why: str) -> None:
        """Mark the surrogate as broken until an administrator reloads it."""
        self.broken = why
        log.error("surrogate cannot be loaded", app=self._app, reason=why)
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.end()
        self._woken.set()

    def _hopeless(self) -> None:
        if self._given is not None:
            self._give_back(f"it cannot be loaded: {self.broken}", hopeless=True)
