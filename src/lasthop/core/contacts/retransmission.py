"""Waiting for acknowledgements: when to send again, and when to give a channel up.

A channel over TCP or a WebSocket needs none of this, unless the device has another channel that a
message could take. One timer serves a whole session: it runs from the oldest number that the device
has not acknowledged, as AMME's does (section 6.2.1), for as long as receipts usually take.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from lasthop.clock import SECOND, Micros
from lasthop.wire.hop.roundtrip import RoundTrip

S = TypeVar("S")
"""The type of the session that a timer belongs to."""

FIRST_TIMEOUT: Micros = 2 * SECOND
"""The wait for a receipt before any receipt was measured. It is above the round trip of all but
satellite phones: a spurious retransmission costs bytes that the device's user pays for."""

LEAST_TIMEOUT: Micros = SECOND // 2
"""The shortest wait for a receipt. Devices whose receipts take a few milliseconds store before they
acknowledge, and their disks and schedulers pause at times: half a second is a long pause and a
short wait."""

LONGEST_TIMEOUT: Micros = 60 * SECOND

MOST_ATTEMPTS = 8
"""The number of retransmissions without any progress after which a channel is given up, counting
only those after a wait of at least `FIRST_TIMEOUT`. They take four minutes, about as long as a
heartbeat takes to notice a dead link."""


def patience(receipts: RoundTrip | None) -> Micros:
    """Return the microseconds to wait for a receipt over a channel, computed from the receipts
    measured on it (RFC 6298)."""
    if receipts is None:
        return FIRST_TIMEOUT
    return min(max(receipts.timeout, LEAST_TIMEOUT), LONGEST_TIMEOUT)


class Retransmission(Generic[S]):
    """The retransmission timer of one lane of a session that has several channels, or a channel
    that loses frames."""

    __slots__ = ("_attempts", "_repeated", "_timeout", "armed", "due", "lane", "session")

    def __init__(self, session: S, lane: Any = None) -> None:
        self.session = session
        self.lane = lane
        """The lane whose numbers are awaited; None for lane 0."""
        self.due: Micros | None = None
        """When to send again; None while nothing is unacknowledged."""
        self.armed: Micros | None = None
        """The time at which the gateway's timers will next look at this timer; `due` may be later,
        never earlier."""
        self._timeout = FIRST_TIMEOUT
        self._repeated = False
        self._attempts = 0

    def sent(self, now: Micros, wait: Micros) -> None:
        """Start the timer, or shorten it, after something numbered left over a channel; `wait` is
        the time to wait for its receipt."""
        if self.due is None:
            self._timeout = wait
            self.due = now + wait
        elif now + wait < self.due and not self._repeated:
            # It left over a quicker channel than the one that is waited for.
            self._timeout = wait
            self.due = now + wait

    def advanced(self, now: Micros, wait: Micros, *, done: bool) -> None:
        """Restart the timer after the oldest unacknowledged number was acknowledged; stop it if
        nothing else is under way (`done`)."""
        self._timeout = wait
        self._repeated = False
        self._attempts = 0
        self.due = None if done else now + wait

    def again(self, now: Micros) -> bool:
        """Double the timeout because the time is up (RFC 6298, section 5.5); return False if that
        was the last retransmission."""
        self._repeated = True
        self._attempts += self._timeout >= FIRST_TIMEOUT
        self._timeout = min(2 * self._timeout, LONGEST_TIMEOUT)
        self.due = now + self._timeout
        return self._attempts <= MOST_ATTEMPTS
