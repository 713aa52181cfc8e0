"""The state of a session that a change makes durable."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lasthop.device.change import SessionNumbers
from lasthop.device.incoming_lane import LaneSnapshot
from lasthop.device.outgoing_lane import OutgoingLane
from lasthop.wire.hop.frames import Ack, Ranges


class SessionSnapshot(msgspec.Struct, frozen=True):
    """The numbers and the ack that become durable with change `n`."""

    n: int
    state: SessionNumbers
    ack: Ack
    news: Ranges
    lanes: tuple[LaneSnapshot, ...] = ()
    """The lanes, other than lane 0, whose numbers become durable."""
    last: tuple[tuple[int, int], ...] = ()
    """Lanes and numbers of LAST frames that may be acknowledged."""
    sent_in: Sequence[tuple[OutgoingLane, int]] = ()
    """Lanes in which this device sends, except lane 0, with the count of numbers that becomes
    durable."""
