"""The processes of the demo: started, listened to, and ended with everything that they started."""

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
"""Seconds that a process has to end when it is asked; then it is killed, and its group with it."""

LAST_WORDS = 20
"""Lines of what it said that are kept for the case that it fails."""

LONGEST_LINE = 1 << 20


class ChildProcess:
    """One `lasthop` command in a session of its own, so that a Ctrl-C is ours alone."""

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
        """Start `lasthop ARGUMENTS`; `hear` gets every line of its standard error."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "lasthop.runtime.demo.child",
            str(os.getpid()),
            *arguments,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            limit=LONGEST_LINE,
            env={**os.environ, **(environment or {})},
        )
        return cls(process, " ".join(["lasthop", *arguments[:2]]), hear)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def line(self) -> bytes:
        """The next line of its output; a Failure when it ends instead."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            await self.stop()
            raise Failure(f"{self._command} ended: {self.last_word}")
        return line

    async def output(self) -> bytes:
        """All of its output, when it has ended by itself and in success."""
        assert self._process.stdout is not None
        output = await self._process.stdout.read()
        code = await self._process.wait()
        await self._listening
        if code != 0:
            raise Failure(f"{self._command} failed: {self.last_word}")
        return output

    @property
    def last_word(self) -> str:
        """What it said last on standard error."""
        said = [line for line in self._said if line.strip()]
        return said[-1].removeprefix("lasthop: ") if said else "it said nothing"

    async def ended(self) -> int:
        """When it is over; its exit code."""
        return await self._process.wait()

    async def stop(self) -> None:
        """End it and everything below it; returns when all of them are gone.

        Standard error is inherited by whatever a process starts (a Java, its workers), so it is at
        its end only when the last of them is.
        """
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                # First the process alone, which knows how to end what is below it.
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
