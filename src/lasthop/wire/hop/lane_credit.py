"""Flow control of lanes other than lane 0, on the receiver's side: every lane has a window below
that of the session, and room for one small message whatever the other lanes hold
(docs/hop-protocol.md, "Lanes")."""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.errors import CreditExceeded
from lasthop.wire.hop.frames import MAX_LANES, Ack, Credit, LaneClaim, LaneFrame

ROOM = 16 * 1024
"""Bytes of a message that a lane may send when nothing else of the lane is in flight, whatever the
other lanes have in flight: the largest body that does not travel in pieces."""


class _LaneMeter:
    """What one lane may send, and what of it has arrived and is not acknowledged."""

    __slots__ = ("limit", "received", "sizes", "window")

    def __init__(self, window: Credit, received: int, widest: int) -> None:
        self.received = received
        self.window = window
        self.limit = received + widest
        self.sizes: dict[int, int] = {}


class LaneMeters:
    """Checks that a peer stays within the windows of its lanes on one channel.

    As with `Meter`, what was granted once is never an error. Of lanes that were not used for long
    nothing is kept: so many others were used since that they must have closed.
    """

    __slots__ = ("_byte_limit", "_bytes", "_count", "_lanes", "_limit", "_widest", "_window")

    def __init__(self, window: Credit, claims: Iterable[LaneClaim] = ()) -> None:
        self._window = window
        self._widest = window.messages
        """The widest window of the session so far: what it allowed may still be on its way."""
        self._lanes = {
            claim.lane: _LaneMeter(window, claim.received, window.messages) for claim in claims
        }
        self._count = 0
        self._bytes = 0
        self._limit = 0
        self._byte_limit = 0
        self.grant(window)

    def take(self, lane: int, seq: int, size: int) -> None:
        """Count an arrived message; raise CreditExceeded if it is beyond a window."""
        meter = self._lane(lane)
        if seq >= max(meter.limit, meter.received + 1):
            raise CreditExceeded("a message is beyond its lane's window", lane=lane, number=seq)
        if seq < meter.received or seq in meter.sizes:
            return
        alone = not meter.sizes and size <= ROOM
        first = not self._count
        meter.sizes[seq] = size
        self._count += 1
        self._bytes += size
        if self._count > self._limit or (self._bytes > self._byte_limit and not (alone or first)):
            raise CreditExceeded("the lanes together are beyond the window", lane=lane)

    def said(self, frame: LaneFrame) -> None:
        """Note an acknowledgement or a window of a lane that the peer was told."""
        if type(frame.frame) is Ack:
            self._acknowledge(frame.lane, frame.frame.received)
        elif type(frame.frame) is Credit:
            self._grant(frame.lane, frame.frame)

    def _acknowledge(self, lane: int, received: int) -> None:
        meter = self._lanes.get(lane)
        if meter is None or received <= meter.received:
            return
        for seq in [seq for seq in meter.sizes if seq < received]:
            self._bytes -= meter.sizes.pop(seq)
            self._count -= 1
        meter.received = received
        meter.limit = max(meter.limit, received + meter.window.messages)

    def _grant(self, lane: int, window: Credit) -> None:
        meter = self._lane(lane)
        meter.window = window
        meter.limit = max(meter.limit, meter.received + window.messages)

    def _lane(self, lane: int) -> _LaneMeter:
        lanes = self._lanes
        meter = lanes.pop(lane, None) or _LaneMeter(self._window, 0, self._widest)
        lanes[lane] = meter
        if len(lanes) > 2 * MAX_LANES:
            oldest = next(iter(lanes))
            if lanes[oldest].sizes:
                raise CreditExceeded("there are more lanes than may be open", most=MAX_LANES)
            del lanes[oldest]
        return meter

    def grant(self, window: Credit) -> None:
        """Note the window of the session that the peer is given from now on."""
        self._window = window
        self._widest = max(self._widest, window.messages)
        self._limit = max(self._limit, window.messages + MAX_LANES)
        self._byte_limit = max(self._byte_limit, window.bytes + MAX_LANES * ROOM)
