"""The real clock, made safe: it never goes back.

When the machine's clock jumps back, time stands still here until it has caught up; when it jumps
ahead, so do we. Deadlines are promises in UTC, so both are what a publisher would expect.
"""

from __future__ import annotations

import time

from lasthop.clock import Micros


class SystemClock:
    """UTC of this machine in microseconds, never less than before."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> Micros:
        now = time.time_ns() // 1000
        self._last = max(self._last, now)
        return self._last
