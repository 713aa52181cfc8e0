"""The device's clock."""

from __future__ import annotations

import time

from lasthop.clock import Micros


class DeviceClock:
    """UTC of this machine in microseconds; when it is set back, time stands still for a while."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> Micros:
        self._last = max(self._last, time.time_ns() // 1000)
        return self._last
