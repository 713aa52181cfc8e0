"""Starts a worker process of a surrogate, sends it work, and ends it with all processes that it has
started."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec
import structlog

from lasthop.runtime.surrogates.duty import Launch
from lasthop.surrogate.frames import (
    Begin,
    Begun,
    Frames,
    FrameTooLong,
    Loaded,
    Order,
    Report,
    Unloadable,
    decode_report,
    frame,
)

LOAD_SECONDS = 30.0
"""Seconds that a worker may take to import an app's modules; some libraries take seconds on a busy
machine."""

HANGING_UP = 1.0
"""Seconds after which a worker that has closed its connection is killed, if it has not ended
before."""

LINES_PER_SECOND = 20
"""The largest number of lines per second of a worker's output that are logged, so that the output
does not fill the gateway's log."""

MAX_LINE = 1000

log = structlog.get_logger()


class CannotStart(Exception):
    """The worker cannot be used: its class cannot be loaded, or takes too long to load."""


class WorkerEnded(Exception):
    """The worker process has ended before it finished its task."""


class WorkerProcess:
    """A running worker process. `reported` is called with its reports, `ended` with the reason when
    it has ended."""

    def __init__(
        self, process: asyncio.subprocess.Process, launch: Launch, line: socket.socket
    ) -> None:
        self._process = process
        self._launch = launch
        self._line = line
        self._transport: asyncio.Transport | None = None
        self._answers: asyncio.Queue[Report | None] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self.serving = False
        """Whether the worker has started its surrogate and accepts work."""
        self.reported: Callable[[Report], None] = lambda report: None
        self.ended: Callable[[str], None] = lambda how: None
        self.gone: str | None = None
        """The reason why the worker ended; None while it runs."""

    @classmethod
    async def start(cls, launch: Launch) -> WorkerProcess:
        """Start a worker and let it load its class; raise `CannotStart` or `WorkerEnded`."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "lasthop.surrogate.worker",
                    str(os.getpid()),
                    str(theirs.fileno()),
                    launch.place,
                    str(launch.memory),
                    *([launch.path] if launch.path else []),
                    pass_fds=[theirs.fileno()],
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    env=_environment(),
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise WorkerEnded(f"it cannot be started: {error.strerror}") from None
        worker = cls(process, launch, ours)
        try:
            await worker._connect()
            async with asyncio.timeout(LOAD_SECONDS):
                await worker._expect(Loaded)
        except TimeoutError:
            await worker.end()
            raise CannotStart(f"loading took longer than {LOAD_SECONDS:.0f} s") from None
        except BaseException:
            await worker.end()
            raise
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    async def begin(self, entries: dict[str, bytes], limit: int) -> None:
        """Start the surrogate from this state; raise `CannotStart` or `WorkerEnded`."""
        self.serving = False
        self.send(Begin(entries, limit))
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                await self._expect(Begun)
        except TimeoutError:
            raise CannotStart(f"__init__ took longer than {LOAD_SECONDS:.0f} s") from None
        self.serving = True

    def send(self, order: Order) -> None:
        """Send an order to the worker."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(order))

    def kill(self) -> None:
        """Kill the worker at once, with all processes that it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Kill the worker, and wait until its process has ended."""
        self.ended = lambda how: None
        self.kill()
        if self._transport is not None:
            self._transport.close()
        else:
            self._line.close()
        await self._process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_unix_connection(lambda: _Line(self), sock=self._line)
        self._tasks = [loop.create_task(self._watch()), loop.create_task(self._listen())]

    async def _expect(self, kind: type[Loaded | Begun]) -> None:
        report = await self._answers.get()
        if isinstance(report, Unloadable):
            raise CannotStart(report.reason)
        if not isinstance(report, kind):
            raise WorkerEnded(self.gone or "it broke the protocol")

    def took(self, data: bytes) -> None:
        """Handle one complete report of the worker."""
        try:
            report = decode_report(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.broke("it broke the protocol")
            return
        if self.serving:
            self.reported(report)
        else:
            self._answers.put_nowait(report)

    def broke(self, how: str) -> None:
        """End the worker after it violated the protocol or closed its connection."""
        if self.gone is None:
            self.gone = how
            self._answers.put_nowait(None)
            self.kill()
            self.ended(how)

    async def _watch(self) -> None:
        code = await self._process.wait()
        self.kill()  # Also kills the processes that it has started.
        self.broke(f"killed by signal {-code}" if code < 0 else f"ended with code {code}")

    async def _listen(self) -> None:
        """Log what the worker prints, up to a limit of lines and length."""
        output = self._process.stdout
        assert output is not None
        loop = asyncio.get_running_loop()
        second, lines, rest = 0, 0, b""
        while data := await output.read(1 << 16):
            *whole, rest = (rest + data).split(b"\n")
            rest = rest[-MAX_LINE:]
            if int(loop.time()) != second:
                second, lines = int(loop.time()), 0
            for line in whole:
                lines += 1
                if lines <= LINES_PER_SECOND:
                    said = line[:MAX_LINE].decode("utf-8", "replace")
                    log.info("surrogate says", app=self._launch.app, text=said)
                elif lines == LINES_PER_SECOND + 1:
                    log.warning("surrogate prints too much; lines dropped", app=self._launch.app)


class _Line(asyncio.Protocol):
    """Passes the reports of a worker on, one by one."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker
        self._frames = Frames()

    def data_received(self, data: bytes) -> None:
        try:
            for one in self._frames.receive(data):
                self._worker.took(one)
        except FrameTooLong as error:
            self._worker.broke(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        # The exit code of the process tells more, so wait for it; a worker that only closed its
        # connection is killed.
        asyncio.get_running_loop().call_later(HANGING_UP, self._worker.kill)


def _environment() -> dict[str, str]:
    """Return the gateway's environment without its settings, which may contain secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LASTHOP_")}
