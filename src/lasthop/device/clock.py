"""The clock of a device: the system's time, never going back."""

from __future__ import annotations

import time

from lasthop.clock import Micros


class DeviceClock:
    """The UTC time of this machine in microseconds; if the system's clock is set back, this clock
    stands still until the system's has caught up."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> Micros:
        self._last = max(self._last, time.time_ns() // 1000)
        return self._last
