"""The state of a session that a change makes durable."""

from __future__ import annotations

import msgspec

from lasthop.device.change import SessionNumbers
from lasthop.wire.hop.frames import Ack, Ranges


class SessionSnapshot(msgspec.Struct, frozen=True):
    """The numbers and the ack that become durable with change `n`."""

    n: int
    state: SessionNumbers
    ack: Ack
    news: Ranges
