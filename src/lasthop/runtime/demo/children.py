"""The child processes of the demo and of chaos: started, read from, and ended with everything
that they started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from lasthop.runtime.failure import Failure

GRACE = 15.0
"""Seconds that a process has to end after SIGTERM; then its process group is killed."""

LAST_WORDS = 20
"""The number of lines at the end of standard error that are kept, for the error message if the
process fails."""

LONGEST_LINE = 1 << 20


class ChildProcess:
    """One `lasthop` command in a session of its own, so that Ctrl-C reaches only the demo."""

    def __init__(
        self, process: asyncio.subprocess.Process, command: str, hear: Callable[[str], None]
    ) -> None:
        self._process = process
        self._command = command
        self._hear = hear
        self._said: deque[str] = deque(maxlen=LAST_WORDS)
        self._listening = asyncio.ensure_future(self._listen())

    @classmethod
    async def start(
        cls,
        *arguments: str,
        hear: Callable[[str], None] = lambda line: None,
        environment: Mapping[str, str] | None = None,
    ) -> ChildProcess:
        """Start `lasthop ARGUMENTS`; `hear` is called with every line of its standard error."""
        entry = (sys.executable, "-m", "lasthop.runtime.demo.child", str(os.getpid()))
        return await cls.start_program(
            *entry,
            *arguments,
            name=" ".join(["lasthop", *arguments[:2]]),
            hear=hear,
            environment=environment,
        )

    @classmethod
    async def start_program(
        cls,
        *command: str,
        name: str,
        hear: Callable[[str], None] = lambda line: None,
        environment: Mapping[str, str] | None = None,
    ) -> ChildProcess:
        """Start any program; `name` is what messages call it."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            limit=LONGEST_LINE,
            env={**os.environ, **(environment or {})},
        )
        return cls(process, name, hear)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def line(self) -> bytes:
        """Return the next line of the process's output; raise `Failure` if the process ends
        instead."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            await self.stop()
            raise Failure(f"{self._command} ended: {self.last_word}")
        return line

    async def output(self) -> bytes:
        """Return all output of the process after its end; raise `Failure` if it ended with an
        error."""
        assert self._process.stdout is not None
        output = await self._process.stdout.read()
        code = await self._process.wait()
        await self._listening
        if code != 0:
            raise Failure(f"{self._command} failed: {self.last_word}")
        return output

    @property
    def last_word(self) -> str:
        """The last line that the process wrote to standard error."""
        said = [line for line in self._said if line.strip()]
        return said[-1].removeprefix("lasthop: ") if said else "it said nothing"

    def send_signal(self, number: int) -> None:
        """Send the process a signal, if it still runs."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def ended(self) -> int:
        """Wait until the process has ended; return its exit code."""
        return await self._process.wait()

    async def stop(self) -> None:
        """End the process and everything that it has started; return when all of them have ended.

        The processes that it starts (Java, its workers) inherit its standard error, so that
        standard error ends only when the last of them has ended.
        """
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                # First the process alone, which can end its own children properly.
                if number is signal.SIGTERM:
                    self._process.send_signal(number)
                else:
                    os.killpg(self._process.pid, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await asyncio.shield(asyncio.gather(self._process.wait(), self._listening))
                    return

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while line := await self._process.stderr.readline():
            text = line.decode(errors="replace").rstrip()
            self._said.append(text)
            self._hear(text)
