"""The payload that is sent: 256 printable bytes with the number of the message and when it was due.

Printable, because the C client of Mosquitto reads lines and our batches are lines of JSON. All
processes share one machine and therefore one monotonic clock.
"""

from __future__ import annotations

import time

SIZE = 256
"""Bytes of every payload, for every system."""

_FILLER = ("the quick brown fox jumps over the lazy dog " * 6)[: SIZE - 32].encode()


def stamp(number: int, at: float = 0.0) -> bytes:
    """Return the payload of one message: microseconds and number in hexadecimal, then filler.

    >>> len(stamp(7)), number_of(stamp(7)), time_of(stamp(7, 1.5))
    (256, 7, 1.5)
    """
    return b"%016x%016x%b" % (int(at * 1e6), number, _FILLER)


def number_of(payload: bytes) -> int:
    """Return the number of the message in a payload."""
    return int(payload[16:32], 16)


def time_of(payload: bytes) -> float:
    """Return when a payload was due to leave, in seconds of the monotonic clock."""
    return int(payload[:16], 16) / 1e6


def now() -> float:
    """Return the seconds of the clock that all processes of a run share."""
    return time.monotonic()
