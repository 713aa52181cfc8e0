"""What the messages of a device have to do with pieces: bodies that came ahead, streams that open,
bodies that are asked for."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop.core.transfers.bodies import Bodies
from lasthop.core.transfers.streams import Streams
from lasthop.core.transfers.uploads import Uploads


@dataclass(frozen=True, slots=True)
class Pieces:
    """Everything that travels in pieces."""

    uploads: Uploads
    streams: Streams
    bodies: Bodies
