"""One live channel of a session: the label it came with, and whether it takes anything now."""

from __future__ import annotations

from typing import Final

from lasthop.decision.contention import Gauge
from lasthop.wire.hop.frames import DEFAULT_MAX_FRAME, Credit


class Line:
    """A way to a device that is there now. A session has none, one, or several at once."""

    __slots__ = (
        "channel",
        "gauge",
        "greeted",
        "link",
        "lossy",
        "max_frame",
        "network",
        "paused",
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
        self.greeted = False
        """WELCOME has left: nothing else leaves before."""
        self.paused = False
        """Its unsent buffer is full."""
        self.window: Credit | None = None
        """What the device last said over it that it takes at a time."""


AWAY: Final = Line(0)
"""Stands for the line of a device that is not there."""
