"""A process of a run: started again whenever it ends, killed and frozen when a fault says so."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lasthop.runtime.demo.children import ChildProcess

BEFORE_ANOTHER_START = 0.2
"""Seconds after a process has ended by itself, as a service manager would wait."""


@dataclass(kw_only=True, eq=False)
class Party:
    """One gateway, device or publisher, whichever process it is at the moment."""

    name: str
    command: Sequence[str]
    holder: int = 0
    """The holder of the disk that it lives on, or 0."""
    environment: Mapping[str, str] = field(default_factory=dict)
    complain: Callable[[str], None]
    """Called when the process has ended though nobody ended it."""
    note: Callable[[str], None]
    """Called with what happens to the process, for the journal."""
    log: Path
    """The file for what the process says on standard error."""
    ended_by_itself: int = 0
    _child: ChildProcess | None = None
    _away: float | None = None
    _ending: int | None = None
    """The signal that has ended the process for good."""
    _finishing: bool = False

    async def keep_running(self) -> None:
        """Run the process, again and again, until it has been ended or has finished."""
        while self._ending is None:
            child = self._child = await self._start()
            self.note(f"{self.name} started as {child.pid}")
            self._end_what_has_just_started()
            code = await child.ended()
            self.note(f"{self.name} ended as {child.pid} with {code}")
            self._child = None
            if code == 0 and self._expected:
                return
            if self._away is not None:
                await asyncio.sleep(self._away)
                self._away = None
            elif code != -signal.SIGKILL:
                self._ended(child, code)
                await asyncio.sleep(BEFORE_ANOTHER_START)

    @property
    def _expected(self) -> bool:
        """Whether the process may end now."""
        return self._finishing or self._ending is not None

    def _end_what_has_just_started(self) -> None:
        """Pass on the signal that came while there was no process."""
        if self._ending is not None and self._child is not None:
            self._child.send_signal(self._ending)

    async def _start(self) -> ChildProcess:
        module = "lasthop.runtime.chaos.launcher"
        entry = (sys.executable, "-m", module, str(os.getpid()), str(self.holder))
        return await ChildProcess.start_program(
            *entry, *self.command, name=self.name, hear=self._hear, environment=self.environment
        )

    def _hear(self, line: str) -> None:
        with self.log.open("a") as log:
            log.write(line + "\n")

    def _ended(self, child: ChildProcess, code: int) -> None:
        self.ended_by_itself += 1
        self.complain(f"{self.name} ended with {code}: {child.last_word}")

    @property
    def pid(self) -> int | None:
        """The id of the process, if there is one now."""
        return self._child.pid if self._child is not None else None

    def kill(self, away: float) -> bool:
        """Kill the process and start it again after so many seconds; False if there is none."""
        if self._child is None or self._away is not None:
            return False
        self._away = away
        self._child.send_signal(signal.SIGKILL)
        return True

    def freeze(self) -> bool:
        """Stop the process where it is; False if there is none."""
        if self._child is None:
            return False
        self._child.send_signal(signal.SIGSTOP)
        return True

    def thaw(self) -> None:
        """Let a frozen process go on."""
        if self._child is not None:
            self._child.send_signal(signal.SIGCONT)

    def finish(self) -> None:
        """Do not start the process again once it has ended well."""
        self._finishing = True

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the process for good; `keep_running` returns when it has ended."""
        self._ending = number
        if self._child is not None:
            self._child.send_signal(number)

    def most_memory(self) -> int:
        """Return the most memory that the process has used until now, in bytes; 0 if unknown."""
        with suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) << 10
        return 0
