"""Latency and contention, observed on the traffic that flows anyway (seed 004, section 3.5).

The sender notes of what it sends its own time and its sending rate. The receiver acknowledges
everything anyway: what an acknowledgement says of the time that passed and of the rate at which
data arrives costs nothing. No clocks are compared: latency is a difference of the sender's own.
"""

from __future__ import annotations

from math import exp

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.decision.links import MAX_CONTENTION, Link

SMOOTHING = 8
"""Moving averages give a new sample one eighth, as TCP does for its round trip: a single odd one
is forgotten, a change of place is learned within a dozen messages."""

RATE_WINDOW: Micros = 5 * SECOND
"""Over how long rates are averaged: several round trips of a mobile network, so that both ends
average over the same messages."""


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """Of a message that left: when, and how fast data was leaving, in bytes per second."""

    sent_at: Micros
    rate: int


class Estimate(msgspec.Struct):
    """What is known of a link; to be stored, restored, and put into a `Link`."""

    latency: Micros | None = None
    contention: float = 1.0
    samples: int = 0

    def applied(self, link: Link) -> Link:
        """The link as measured; before the first sample as declared."""
        return link.measured(latency=self.latency, contention=max(1.0, self.contention))


class RateMeter(msgspec.Struct):
    """Bytes per second, averaged with weights that fade over `RATE_WINDOW`."""

    amount: float = 0.0
    at: Micros = 0

    def count(self, size: int, now: Micros) -> None:
        """So much has passed now."""
        self._fade(now)
        self.amount += size

    def rate(self, now: Micros) -> int:
        """The rate as of now."""
        self._fade(now)
        return round(self.amount * SECOND / RATE_WINDOW)

    def _fade(self, now: Micros) -> None:
        if now > self.at:
            self.amount *= exp((self.at - now) / RATE_WINDOW)
            self.at = now


class Gauge:
    """Measures one link at its sender."""

    def __init__(self) -> None:
        self.estimate = Estimate()
        self._sending = RateMeter()
        self._arriving = RateMeter()
        self.told_at: Micros | None = None
        """When somebody was last told of the estimate."""

    @property
    def throughput(self) -> int:
        """Bytes per second that have arrived lately."""
        return self._arriving.rate(self._arriving.at)

    def left(self, size: int, now: Micros) -> Stamp:
        """A message leaves."""
        self._sending.count(size, now)
        return Stamp(now, self._sending.rate(now))

    def arrived(self, stamp: Stamp, size: int, now: Micros) -> None:
        """It was acknowledged."""
        self._arriving.count(size, now)
        latency = now - stamp.sent_at
        if latency < 0:
            return  # The clock was set back: this one teaches nothing.
        rate = self._arriving.rate(now)
        sample = stamp.rate / rate if rate else MAX_CONTENTION
        sample = min(max(sample, 1.0), MAX_CONTENTION) if stamp.rate else 1.0
        known = self.estimate
        if known.latency is None:
            known.latency, known.contention = latency, sample
        else:
            known.latency += (latency - known.latency) // SMOOTHING
            known.contention += (sample - known.contention) / SMOOTHING
        known.samples += 1
