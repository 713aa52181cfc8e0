"""What kinds of links the demo's devices have, and how bad each of them is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProfile:
    """A kind of link. Times are in seconds."""

    name: str
    """The label that the device reports; the gateway keeps its figures by it."""
    delay: float
    """One way."""
    jitter: float
    """At most so much is added to it, at random."""
    rate: int
    """Bytes a second, each way."""
    up: float
    """Mean time between two outages."""
    down: float
    """Mean time of an outage."""
    silence: float = 0.0
    """An outage begins with silence: for so long nothing passes, and nobody notices. Then
    connections are reset, and new ones refused until it is over."""

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
