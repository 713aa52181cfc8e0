"""A timer of the event loop for code that says when it next wants waking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lasthop.clock import SECOND, Clock, Micros


class Alarm:
    """One timer of the event loop, which can be set again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ring: Callable[[], None] = lambda: None
        """The function to call when it is time."""
        self._loop = asyncio.get_running_loop()
        self._due: Micros | None = None
        self._handle: asyncio.TimerHandle | None = None

    def ring_at(self, due: Micros) -> None:
        """Ring at this time, and at no earlier one that was set before."""
        if due != self._due:
            self.stop()
            self._due = due
            delay = max(0, due - self._clock.now()) / SECOND
            self._handle = self._loop.call_later(delay, self._rings)

    def _rings(self) -> None:
        self._due = self._handle = None
        self.ring()

    def stop(self) -> None:
        """Forget the time that was set: do not ring."""
        self._due = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
