"""The protocol by which the rest of lasthop reads the time, and the unit of all times.

All times inside are integers: microseconds of UTC since 1970. The real clock lives in `runtime`,
the virtual one in `simulation`; state machines get `now` as an argument and never ask a clock.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

Micros: TypeAlias = int

MILLISECOND: Micros = 1_000
SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR


class Clock(Protocol):
    """Anything that tells the current time: the system's clock, or the virtual clock of a
    rehearsal."""

    def now(self) -> Micros:
        """Return the current UTC time in microseconds; never less than an earlier call returned."""
        ...
