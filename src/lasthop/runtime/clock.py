"""The real clock of a gateway, which never goes back.

When the machine's clock jumps back, this clock stands still until the machine's has caught up; when
it jumps ahead, this one follows. Deadlines are promises in UTC, so both are what a publisher would
expect.
"""

from __future__ import annotations

import time

from lasthop.clock import Micros


class SystemClock:
    """The UTC time of this machine in microseconds, never less than before."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> Micros:
        now = time.time_ns() // 1000
        self._last = max(self._last, now)
        return self._last
