"""What becomes true of a session when a change of it is durable."""

from __future__ import annotations

import msgspec

from lasthop.device.change import SessionNumbers
from lasthop.wire.hop.frames import Ack, Ranges


class Snapshot(msgspec.Struct, frozen=True):
    """What becomes true when change `n` is durable."""

    n: int
    state: SessionNumbers
    ack: Ack
    news: Ranges
