"""One live channel of a session: its labels, and whether it can take a frame now."""

from __future__ import annotations

from typing import Final

from lasthop.clock import Micros
from lasthop.decision.contention import Gauge
from lasthop.decision.routes import obstacle
from lasthop.message import Quality
from lasthop.wire.hop.frames import DEFAULT_MAX_FRAME, Credit
from lasthop.wire.hop.roundtrip import RoundTrip
from lasthop.wire.hop.transfer import Pace


class ChannelState:
    """A channel of a device that is in contact. A session has none, one, or several at once."""

    __slots__ = (
        "busy",
        "channel",
        "features",
        "fed_at",
        "gauge",
        "greeted",
        "link",
        "lossy",
        "max_frame",
        "network",
        "pace",
        "paused",
        "receipts",
        "window",
    )

    def __init__(
        self,
        channel: int,
        *,
        link: str = "",
        network: str = "",
        max_frame: int = DEFAULT_MAX_FRAME,
        lossy: bool = False,
        features: int = 0,
    ) -> None:
        self.channel = channel
        self.link = link
        self.network = network
        self.max_frame = max_frame
        """Bytes of the largest frame that the device accepts."""
        self.lossy = lossy
        """Whether the channel may lose frames while it lasts."""
        self.gauge: Gauge | None = None
        """The measurements of the channel, for a device that has preferences; otherwise None."""
        self.receipts: RoundTrip | None = None
        """The time that the device takes to acknowledge what left over this channel, measured only
        if frames may be lost or the device has several channels."""
        self.greeted = False
        """Whether WELCOME has left: nothing else leaves before it."""
        self.paused = False
        """Whether the channel's unsent buffer is full."""
        self.window: Credit | None = None
        """The window that the device last named over this channel; None if it named none."""
        self.features = features
        """The bits of the protocol features that the device understands beyond the core."""
        self.busy = False
        """Whether a piece is in the unsent buffer: the next piece waits, so that messages overtake
        it."""
        self.fed_at: Micros = 0
        self.pace: Pace | None = None


def fits(line: ChannelState, quality: Quality | None) -> bool:
    """Return whether a channel has the quality that a publisher requires."""
    return quality is None or obstacle(line.network, line.link, quality) is None


AWAY: Final = ChannelState(0)
"""Stands for the channel of a device that is not in contact."""
