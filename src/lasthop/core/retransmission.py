"""Patience with a channel that may lose frames: when to send again, and when to give it up.

A channel over TCP or a WebSocket needs none of this. One timer serves a whole session: it runs from
the oldest number that the device has not acknowledged, as AMME's does (section 6.2.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.clock import SECOND, Micros

if TYPE_CHECKING:
    from lasthop.core.session import Session

FIRST_TIMEOUT: Micros = 2 * SECOND
"""Above the round trip of all but satellite phones: a spurious repetition costs bytes that the
device's user pays for."""

LONGEST_TIMEOUT: Micros = 60 * SECOND

MOST_ATTEMPTS = 8
"""Repetitions without any progress. With the time-outs above they take four minutes, about as long
as a heartbeat takes to notice a dead link."""


class Retransmission:
    """The timer of one lossy channel."""

    __slots__ = ("_attempts", "_timeout", "armed", "due", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.due: Micros | None = None
        """When to send again; `None` while nothing is unacknowledged."""
        self.armed: Micros | None = None
        """For when it stands among the gateway's timers. It may be due later than that, never
        earlier."""
        self._timeout = FIRST_TIMEOUT
        self._attempts = 0

    def sent(self, now: Micros) -> None:
        """Something numbered has left."""
        if self.due is None:
            self.due = now + self._timeout

    def advanced(self, now: Micros, *, done: bool) -> None:
        """The oldest unacknowledged number was acknowledged; `done` when nothing else is under
        way."""
        self._timeout = FIRST_TIMEOUT
        self._attempts = 0
        self.due = None if done else now + FIRST_TIMEOUT

    def again(self, now: Micros) -> bool:
        """The time is up: wait twice as long for the repetition. False: it was the last one."""
        self._attempts += 1
        self._timeout = min(2 * self._timeout, LONGEST_TIMEOUT)
        self.due = now + self._timeout
        return self._attempts <= MOST_ATTEMPTS
