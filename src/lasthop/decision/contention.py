"""Latency and contention of a link, measured on the traffic that flows anyway (McGill thesis, 3.5).

The sender notes its own time and sending rate with every message. The receiver acknowledges every
message anyway: from the acks the sender learns the time that passed and the rate at which data
arrives, at no cost. No clocks are compared: latency is a difference of the sender's own times.
"""

from __future__ import annotations

from math import exp

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.decision.links import MAX_CONTENTION, Link

SMOOTHING = 8
"""Moving averages give a new sample one eighth, as TCP does for its round trip: a single odd sample
is forgotten, and a change of place is learned within a dozen messages."""

RATE_WINDOW: Micros = 5 * SECOND
"""The time over which rates are averaged: several round trips of a mobile network, so that both
ends average over the same messages."""


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """When a message left, and at which rate data was leaving then, in bytes per second."""

    sent_at: Micros
    rate: float


class Estimate(msgspec.Struct):
    """The measured values of a link, to be stored, restored, and put into a `Link`."""

    latency: Micros | None = None
    contention: float = 1.0
    samples: int = 0

    def applied(self, link: Link) -> Link:
        """Return the link with the measured values; before the first sample, with the declared
        values."""
        return link.measured(latency=self.latency, contention=max(1.0, self.contention))


class RateMeter(msgspec.Struct):
    """A rate in bytes per second, averaged with weights that fade over `RATE_WINDOW`."""

    amount: float = 0.0
    at: Micros = 0

    def count(self, size: int, now: Micros) -> None:
        """Count `size` bytes that passed at `now`."""
        self._fade(now)
        self.amount += size

    def rate(self, now: Micros) -> float:
        """Return the rate at `now`, in bytes per second. It is not rounded: messages of two bytes
        have a rate as well."""
        self._fade(now)
        return self.amount * SECOND / RATE_WINDOW

    def _fade(self, now: Micros) -> None:
        if now > self.at:
            self.amount *= exp((self.at - now) / RATE_WINDOW)
            self.at = now


class Gauge:
    """Measures latency and contention of one link at its sender."""

    def __init__(self) -> None:
        self.estimate = Estimate()
        self._sending = RateMeter()
        self._arriving = RateMeter()
        self.told_at: Micros | None = None
        """When the estimate was last reported; None: never."""

    @property
    def throughput(self) -> int:
        """The rate at which data has arrived lately, in bytes per second."""
        return round(self._arriving.rate(self._arriving.at))

    def left(self, size: int, now: Micros) -> Stamp:
        """Note that a message of `size` bytes leaves; return the stamp for its ack."""
        self._sending.count(size, now)
        return Stamp(now, self._sending.rate(now))

    def arrived(self, stamp: Stamp, size: int, now: Micros) -> None:
        """Note that the message with this stamp was acknowledged, and update the estimate."""
        self._arriving.count(size, now)
        latency = now - stamp.sent_at
        if latency < 0:
            return  # The clock was set back, so this sample is useless.
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
