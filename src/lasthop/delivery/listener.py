"""What all listeners share: they let peers in, count them and report to the switchboard.

A peer that misbehaves is told so in a CLOSE and loses its channel; other channels are not affected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lasthop.clock import Clock
from lasthop.delivery.channel import Switchboard
from lasthop.errors import Overloaded
from lasthop.transport.link import ChannelLink, Ends
from lasthop.wire.hop.frames import Close, CloseCode, Frame
from lasthop.wire.hop.handshake import Opened, Waiting
from lasthop.wire.hop.mapping import Mapping

MAX_CONNECTIONS = 100_000
"""The largest number of channels of a listener: at 4 KiB each they take 400 MiB. Beyond that it is
better to turn a device away for a while than to fail all of them."""

RETRY_AFTER_MS = 10_000
"""The retry-after of a device that finds no room, in milliseconds: long enough for another one to
leave."""


class Listener:
    """Accepts the channels that devices open over one kind of transport."""

    def __init__(
        self,
        switchboard: Switchboard,
        *,
        clock: Clock,
        mapping: Mapping,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._switchboard = switchboard
        self._clock = clock
        self._mapping = mapping
        self._max_connections = max_connections
        self._ends = Ends(self, clock)
        self._links: set[ChannelLink] = set()
        self.errors: Counter[str] = Counter()
        """The number of errors on channels since the start, by reason; for metrics."""

    @property
    def connections(self) -> int:
        """The number of channels that are open."""
        return len(self._links)

    def machine(self) -> Waiting:
        """Return the protocol state of a new channel, which waits ten seconds for HELLO."""
        return Waiting(mapping=self._mapping, now=self._clock.now())

    # What links report (`transport.link.Owner`).

    def connected(self, link: ChannelLink) -> None:
        if len(self._links) >= self._max_connections:
            self.errors[Overloaded.code] += 1
            link.close(CloseCode.OVERLOADED, "too many connections", RETRY_AFTER_MS)
            return
        self._links.add(link)
        self._switchboard.opened(link)

    def received(self, link: ChannelLink, frames: Sequence[Frame]) -> None:
        if link in self._links:
            self._switchboard.received(link, frames)

    def welcomed(self, link: ChannelLink, opened: Opened) -> None:
        raise AssertionError("only devices are welcomed")

    def paused(self, link: ChannelLink, paused: bool) -> None:
        if link in self._links:
            self._switchboard.paused(link, paused)

    def drained(self, link: ChannelLink) -> None:
        if link in self._links:
            self._switchboard.drained(link)

    def lost(self, link: ChannelLink, reason: str) -> None:
        if link not in self._links:
            return
        self._links.discard(link)
        error = link.machine.error
        if error is not None:
            self.errors[error.code] += 1
        elif _timed_out(link.closed):
            self.errors["timeout"] += 1
        self._switchboard.lost(link, reason)

    def close_all(self) -> None:
        """Close all channels because the gateway is shutting down."""
        for link in list(self._links):
            link.close(CloseCode.SHUTTING_DOWN, "the gateway is shutting down")
        self._ends.alarms.close()


def _timed_out(close: Close | None) -> bool:
    return close is not None and close.code == CloseCode.TIMEOUT
