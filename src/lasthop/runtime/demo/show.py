"""Shows the progress of the demo: on a terminal a line that is updated, otherwise a new line for
each step."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.status import Status

REFRESH = 0.5
"""Seconds between two updates of the figures."""


class StandingShow:
    """Shows on standard error what the demo does now; shows nothing if the output is for
    programs."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True)
        self._status: Status | None = None
        self._began = time.monotonic()
        self._act = ""
        self.figures: Callable[[], str] = str

    def say(self, act: str) -> None:
        """Show that the next step of the demo begins."""
        self._act = act
        if self._quiet:
            return
        if not sys.stderr.isatty():
            print(f"{time.monotonic() - self._began:6.1f} s  {act}", file=sys.stderr)
            return
        if self._status is None:
            self._status = self._console.status("")
            self._status.start()
        self._refresh()

    async def keep_fresh(self) -> None:
        """Update the figures regularly, until cancelled."""
        while True:
            await asyncio.sleep(REFRESH)
            self._refresh()

    def pause(self) -> None:
        """Remove the status line to make room for other output."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _refresh(self) -> None:
        if self._status is not None:
            figures = self.figures()
            passed = f"{time.monotonic() - self._began:.0f} s"
            self._status.update(" · ".join(part for part in (passed, self._act, figures) if part))
