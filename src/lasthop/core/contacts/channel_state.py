"""One live channel of a session: the label it came with, and whether it takes anything now."""

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
    """A way to a device that is there now. A session has none, one, or several at once."""

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
        """Bytes of a frame that the device takes."""
        self.lossy = lossy
        """It may lose frames while it lasts."""
        self.gauge: Gauge | None = None
        """What is measured on it, for a device that has preferences."""
        self.receipts: RoundTrip | None = None
        """How long the device takes to say that it has what left over this line, where that
        decides when to try another one."""
        self.greeted = False
        """WELCOME has left: nothing else leaves before."""
        self.paused = False
        """Its unsent buffer is full."""
        self.window: Credit | None = None
        """What the device last said over it that it takes at a time."""
        self.features = features
        """What the device understands beyond the core."""
        self.busy = False
        """A piece is in its unsent buffer: the next one waits, so that messages overtake."""
        self.fed_at: Micros = 0
        self.pace: Pace | None = None


def fits(line: ChannelState, quality: Quality | None) -> bool:
    """Whether a line is what a publisher requires of it."""
    return quality is None or obstacle(line.network, line.link, quality) is None


AWAY: Final = ChannelState(0)
"""Stands for the line of a device that is not there."""
