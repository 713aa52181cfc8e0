"""What the rest of lasthop knows of time: a protocol, and the unit.

All times inside are integers: microseconds of UTC since 1970. The real clock lives in `runtime`,
the virtual one in `simulation`; state machines get `now` as an argument and never ask.
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
    """Tells the time."""

    def now(self) -> Micros:
        """UTC in microseconds; never less than what it said before."""
        ...
