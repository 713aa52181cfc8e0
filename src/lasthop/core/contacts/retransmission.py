"""Patience with what may not arrive: when to send it again, and when to give the channel up.

A channel over TCP or a WebSocket needs none of this, unless there is another one beside it that a
message could take. One timer serves a whole session: it runs from the oldest number that the device
has not acknowledged, as AMME's does (section 6.2.1), for as long as receipts usually take.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from lasthop.clock import SECOND, Micros
from lasthop.wire.hop.roundtrip import RoundTrip

S = TypeVar("S")
"""The session whose timer it is."""

FIRST_TIMEOUT: Micros = 2 * SECOND
"""As long as nothing was measured. Above the round trip of all but satellite phones: a spurious
repetition costs bytes that the device's user pays for."""

LEAST_TIMEOUT: Micros = SECOND // 2
"""Receipts of a few milliseconds come from devices that store before they acknowledge, and whose
disks and schedulers hiccup: half a second is a long hiccup and a short wait."""

LONGEST_TIMEOUT: Micros = 60 * SECOND

MOST_ATTEMPTS = 8
"""Repetitions without any progress, of those that were waited for as long as a first one is when
nothing is known. They take four minutes, about as long as a heartbeat takes to notice a dead
link."""


def patience(receipts: RoundTrip | None) -> Micros:
    """How long to wait for a receipt over a line, by those that came over it (RFC 6298)."""
    if receipts is None:
        return FIRST_TIMEOUT
    return min(max(receipts.timeout, LEAST_TIMEOUT), LONGEST_TIMEOUT)


class Retransmission(Generic[S]):
    """The timer of one session, on a channel that loses frames or on several."""

    __slots__ = ("_attempts", "_repeated", "_timeout", "armed", "due", "session")

    def __init__(self, session: S) -> None:
        self.session = session
        self.due: Micros | None = None
        """When to send again; `None` while nothing is unacknowledged."""
        self.armed: Micros | None = None
        """For when it stands among the gateway's timers. It may be due later than that, never
        earlier."""
        self._timeout = FIRST_TIMEOUT
        self._repeated = False
        self._attempts = 0

    def sent(self, now: Micros, wait: Micros) -> None:
        """Something numbered has left over a line that is given so much time."""
        if self.due is None:
            self._timeout = wait
            self.due = now + wait
        elif now + wait < self.due and not self._repeated:
            # Over a quicker line than what is waited for.
            self._timeout = wait
            self.due = now + wait

    def advanced(self, now: Micros, wait: Micros, *, done: bool) -> None:
        """The oldest unacknowledged number was acknowledged; `done` when nothing else is under
        way, else the next one is given so much time."""
        self._timeout = wait
        self._repeated = False
        self._attempts = 0
        self.due = None if done else now + wait

    def again(self, now: Micros) -> bool:
        """The time is up: wait twice as long for the repetition. False: it was the last one."""
        self._repeated = True
        self._attempts += self._timeout >= FIRST_TIMEOUT
        self._timeout = min(2 * self._timeout, LONGEST_TIMEOUT)
        self.due = now + self._timeout
        return self._attempts <= MOST_ATTEMPTS
