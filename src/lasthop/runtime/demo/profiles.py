"""The kinds of links that the demo's devices have, and how bad each of them is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProfile:
    """A kind of link. Times are in seconds."""

    name: str
    """The label that the device reports; the gateway keeps its figures by this label."""
    delay: float
    """The delay of bytes in one direction."""
    jitter: float
    """The largest random addition to the delay."""
    rate: int
    """The rate in bytes per second, in each direction."""
    up: float
    """The mean time between two outages."""
    down: float
    """The mean duration of an outage."""
    silence: float = 0.0
    """The silence at the beginning of an outage: nothing passes, and nobody notices. Then
    connections are reset, and new ones refused until the outage is over."""

    @property
    def away(self) -> float:
        """The share of the time without the link."""
        return self.down / (self.up + self.down)


WIFI = LinkProfile(name="wifi", delay=0.004, jitter=0.006, rate=2_000_000, up=20.0, down=1.0)
MNO = LinkProfile(name="mno", delay=0.06, jitter=0.05, rate=60_000, up=8.0, down=3.5, silence=0.4)
SATELLITE = LinkProfile(
    name="satellite", delay=0.27, jitter=0.04, rate=12_000, up=6.0, down=8.0, silence=0.8
)

PROFILES = (WIFI, MNO, SATELLITE)
