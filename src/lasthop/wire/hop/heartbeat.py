"""Is the other end still there? Who pings, when, and when to give a channel up.

The device asks when a channel has been idle, because only the device can bring a channel back, and
because its packets keep the entry in the operator's address translator alive. The gateway only
listens, and gives up after two and a half intervals in which nothing arrived; the device when its
question is not answered in time.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from lasthop.clock import SECOND, Micros

DEFAULT_INTERVAL = 240 * SECOND
"""Below the five minutes after which the more impatient address translators forget a connection;
what a network really allows is learned."""


PATIENCE = 60 * SECOND
"""An answer that takes longer will not come: intervals may be an hour, and a device that waited for
as long would be out of reach meanwhile. A minute is generous for the slowest bearers."""


ANSWERED = "the heartbeat was answered"
"""The last word on a channel that was opened to see whether it would be."""

UNHEARD = "nothing was heard for too long"
"""The last word of whoever gives a silent channel up."""


class Beat(Enum):
    """What the time calls for."""

    QUIET = "quiet"
    PING = "ping"
    DEAD = "dead"


class Heartbeat(Protocol):
    """The idle timing of one channel, on either side."""

    interval: Micros
    """May be changed at any time, as it is learned."""

    def on_received(self, now: Micros) -> Micros | None:
        """Something arrived. Returns how long a ping has been waiting, if one was."""
        ...

    def on_sent(self, now: Micros) -> None:
        """Something was sent."""
        ...

    def next_due(self) -> Micros:
        """When to ask `check` again."""
        ...

    def check(self, now: Micros) -> Beat:
        """What to do now. After PING the caller sends one."""
        ...


class Pinging:
    """The device's side: asks after an interval without traffic in either direction.

    Traffic in one direction alone does not do: silence from the device would look like death to the
    gateway, and silence from the gateway may be a link that only works one way.
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
    def unanswered(self) -> bool:
        """Whether a ping waits for its answer."""
        return self._pinged is not None

    def next_due(self) -> Micros:
        if self._pinged is not None:
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
    """The gateway's side: never asks, gives up after two and a half silent intervals."""

    __slots__ = ("_received", "interval")

    def __init__(self, now: Micros, *, interval: Micros = DEFAULT_INTERVAL) -> None:
        self.interval = interval
        self._received = now

    def on_received(self, now: Micros) -> Micros | None:
        self._received = now
        return None

    def on_sent(self, now: Micros) -> None:
        """What we send says nothing of the device."""

    def next_due(self) -> Micros:
        return self._received + self.interval * 5 // 2

    def check(self, now: Micros) -> Beat:
        return Beat.QUIET if now < self.next_due() else Beat.DEAD
