"""What people see while it runs: a line that moves on a terminal, a line per act elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.status import Status

REFRESH = 0.5
"""Seconds between two looks at the figures."""


class StandingShow:
    """Says on standard error where things stand; says nothing for machines."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True)
        self._status: Status | None = None
        self._began = time.monotonic()
        self._act = ""
        self.figures: Callable[[], str] = str

    def say(self, act: str) -> None:
        """Something else happens now."""
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
        """Until cancelled."""
        while True:
            await asyncio.sleep(REFRESH)
            self._refresh()

    def pause(self) -> None:
        """Make room for other output."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _refresh(self) -> None:
        if self._status is not None:
            figures = self.figures()
            passed = f"{time.monotonic() - self._began:.0f} s"
            self._status.update(" · ".join(part for part in (passed, self._act, figures) if part))
