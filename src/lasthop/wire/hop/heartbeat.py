"""The heartbeat of a channel: who pings, when, and when the channel counts as dead.

The device pings when a channel has been idle, because only the device can bring a channel back, and
because its packets keep the entry in the operator's address translator alive. The gateway only
listens, and gives up after 2.5 intervals in which nothing arrived; the device when its ping is not
answered in time (docs/hop-protocol.md, "Heartbeat").
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from lasthop.clock import SECOND, Micros

DEFAULT_INTERVAL = 240 * SECOND
"""The interval that a device starts with: below the five minutes after which the more impatient
address translators forget a connection. What a network really allows is learned."""


PATIENCE = 60 * SECOND
"""The longest wait for an answer to a ping: intervals may be an hour, and a device that waited as
long would be out of reach meanwhile. A minute is generous for the slowest bearers."""


ANSWERED = "the heartbeat was answered"
"""The reason in the CLOSE of a probe channel whose ping was answered."""

UNHEARD = "nothing was heard for too long"
"""The reason in the CLOSE of a channel that was silent for too long."""


class Beat(Enum):
    """What a heartbeat asks for at this time: nothing, a ping, or the end of the channel."""

    QUIET = "quiet"
    PING = "ping"
    DEAD = "dead"


class Heartbeat(Protocol):
    """The idle timing of one channel, on either side."""

    interval: Micros
    """The interval of silence before a ping; may be changed at any time, as it is learned."""

    def on_received(self, now: Micros) -> Micros | None:
        """Note that bytes arrived; return how long a ping has waited for an answer, or None."""
        ...

    def on_sent(self, now: Micros) -> None:
        """Note that bytes were sent on the channel."""
        ...

    def next_due(self) -> Micros:
        """Return when `check` has to be called again."""
        ...

    def check(self, now: Micros) -> Beat:
        """Return what to do now; after PING the caller sends a PING."""
        ...


class Pinging:
    """The device's side: pings after an interval without traffic in either direction.

    Traffic in one direction alone is not enough: silence from the device would look like death to
    the gateway, and silence from the gateway may be a link that only works one way.
    """

    __slots__ = ("_pinged", "_received", "_sent", "interval")

    def __init__(self, now: Micros, *, interval: Micros = DEFAULT_INTERVAL) -> None:
        self.interval = interval
        self._received = now
        self._sent = now
        self._pinged: Micros | None = None

    def on_received(self, now: Micros) -> Micros | None:
        pinged, self._pinged = self._pinged, None
        self._received = now
        return None if pinged is None else now - pinged

    def on_sent(self, now: Micros) -> None:
        self._sent = now

    @property
    def heard(self) -> Micros:
        """When something last arrived on the channel."""
        return self._received

    @property
    def pinged(self) -> Micros | None:
        """When the ping left that waits for its answer; None if none does."""
        return self._pinged

    @property
    def unanswered(self) -> bool:
        """Whether a ping waits for its answer."""
        return self._pinged is not None

    def next_due(self) -> Micros:
        if self._pinged is not None:
            # docs/hop-protocol.md, "Heartbeat": dead without an answer in 1.5 intervals, or in a
            # minute.
            return self._pinged + min(self.interval * 3 // 2, PATIENCE)
        return min(self._received, self._sent) + self.interval

    def check(self, now: Micros) -> Beat:
        if now < self.next_due():
            return Beat.QUIET
        if self._pinged is not None:
            return Beat.DEAD
        self._pinged = now
        self._sent = now
        return Beat.PING


class Listening:
    """The gateway's side: never pings, and gives up after 2.5 silent intervals."""

    __slots__ = ("_received", "interval")

    def __init__(self, now: Micros, *, interval: Micros = DEFAULT_INTERVAL) -> None:
        self.interval = interval
        self._received = now

    def on_received(self, now: Micros) -> Micros | None:
        self._received = now
        return None

    def on_sent(self, now: Micros) -> None:
        """Ignore what the gateway sends: it says nothing about the device."""

    def next_due(self) -> Micros:
        # docs/hop-protocol.md, "Heartbeat": dead when silent for 2.5 intervals.
        return self._received + self.interval * 5 // 2

    def check(self, now: Micros) -> Beat:
        return Beat.QUIET if now < self.next_due() else Beat.DEAD
