"""Measures the round-trip time of a channel without a round trip of its own (AMME, section 6.2.4).

Each side now and then sends its own time and its estimate of the peer's time. The estimate lags by
the delay of the message it came from; when it comes back it lags by the delay of the way back as
well, so that the difference to the true time is one full round trip.

    sot = ct                    own timestamp to send
    spt = not + (ct - npt)      peer timestamp to send
    rtt = ct - rpt              on a received peer timestamp
    not = rot, npt = ct         on a received own timestamp

The last line replaces the thesis's `not = rot - (ct - npt)`, which keeps the first `npt` for ever;
both give the same `spt`, this one without a number that grows.
"""

from __future__ import annotations

from lasthop.clock import MILLISECOND, MINUTE, SECOND, Micros
from lasthop.wire.hop.frames import Time

INITIAL_TIMEOUT = SECOND
"""The timeout before the first measurement (RFC 6298, 2.1)."""

MIN_TIMEOUT = 200 * MILLISECOND
"""The shortest timeout. RFC 6298 (2.4) asks for a second, because of delayed acknowledgements; ours
are not delayed that long, and a lost message on a fast link should not wait for it."""

MAX_TIMEOUT = MINUTE
"""The longest timeout (RFC 6298, 2.5)."""


MAX_TIMESTAMP = 2**53
"""The largest timestamp that is believed: no clock shows more milliseconds, and what we send back
must still fit into 63 bits."""

TIME_EVERY = 10 * SECOND
"""The least time between two TIME frames: delays change with the network, not with the message."""

TIME_WITH = 2048
"""The size of a unit from which TIME is added: it takes 14 bytes, too many for a lone message or
heartbeat."""


class RoundTrip:
    """The exchange of clocks on one channel, and the smoothed round-trip time that follows from
    it."""

    __slots__ = (
        "_asked",
        "_owed",
        "_peer_time",
        "_taken_at",
        "_told_at",
        "smoothed",
        "variation",
    )

    def __init__(self, now: Micros) -> None:
        self._peer_time: int | None = None
        self._taken_at: Micros = now
        self._told_at: Micros = now
        self._asked = False
        self._owed = False
        self.smoothed: Micros | None = None
        self.variation: Micros = 0

    @staticmethod
    def own_time(now: Micros) -> int:
        """Return the timestamp to send (`sot`), in milliseconds."""
        return now // MILLISECOND

    def peer_time(self, now: Micros) -> int | None:
        """Return the estimate of the peer's clock (`spt`) in milliseconds; None before its first
        timestamp."""
        if self._peer_time is None:
            return None
        return self._peer_time + (now - self._taken_at) // MILLISECOND

    def on_own_time(self, timestamp: int, now: Micros) -> None:
        """Note the peer's own timestamp (`rot`)."""
        if timestamp <= MAX_TIMESTAMP:
            self._peer_time = timestamp
            self._taken_at = now

    def on_peer_time(self, timestamp: int, now: Micros) -> Micros | None:
        """Note the peer's estimate of our clock (`rpt`); return the round trip, or None if it is
        implausible."""
        elapsed = now - timestamp * MILLISECOND
        # A wild value, or a clock that jumped in between, must not spoil the average.
        if not 0 <= elapsed <= MAX_TIMEOUT:
            return None
        self.sample(elapsed)
        return elapsed

    def sample(self, elapsed: Micros) -> None:
        """Add a measured round trip to the average (RFC 6298, 2.2 and 2.3)."""
        if self.smoothed is None:
            self.smoothed = elapsed
            self.variation = elapsed // 2
        else:
            self.variation += (abs(self.smoothed - elapsed) - self.variation) // 4
            self.smoothed += (elapsed - self.smoothed) // 8

    @property
    def timeout(self) -> Micros:
        """How long to wait for an acknowledgement before sending again (RFC 6298, 2.3)."""
        if self.smoothed is None:
            return INITIAL_TIMEOUT
        wait = self.smoothed + max(MILLISECOND, 4 * self.variation)
        return min(max(wait, MIN_TIMEOUT), MAX_TIMEOUT)

    def backed_off(self, attempts: int) -> Micros:
        """Return the timeout after so many unanswered attempts: doubled each time (RFC 6298,
        5.5)."""
        return min(self.timeout << min(attempts, 20), MAX_TIMEOUT)

    def ask(self) -> None:
        """Note that our WELCOME has the time, and that the device will answer it."""
        self._asked = True

    def owe(self) -> None:
        """Arrange that the first unit answers the WELCOME's time: the gateway has no measurement
        yet."""
        self._owed = True
        self._told_at -= TIME_EVERY

    def on_time(self, time: Time, now: Micros) -> None:
        """Handle a received TIME, and answer it unless it is the answer to ours."""
        self.on_own_time(time.own, now)
        self.on_peer_time(time.peer, now)
        self._owed = not self._asked
        self._asked = False

    def time_to_send(self, now: Micros, pending: int) -> Time | None:
        """Return the TIME to add to a unit of `pending` bytes, or None if none is due."""
        # docs/hop-protocol.md, "Round trips without a round trip": at most one TIME in ten seconds,
        # and only with a unit of 2 KiB or as an answer.
        if now - self._told_at < TIME_EVERY or not (self._owed or pending >= TIME_WITH):
            return None
        peer = self.peer_time(now)
        if peer is None:
            return None
        self._told_at = now
        self._asked = not self._owed
        self._owed = False
        return Time(self.own_time(now), peer)
