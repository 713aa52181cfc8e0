"""Latency and contention, observed on the traffic that flows anyway (seed 004, section 3.5).

The sender stamps what it sends with its clock and its sending rate. The receiver returns the stamp
with how long it kept it and the rate at which data came in, on whatever goes back next, and on its
own only if nothing does. No clocks are compared: latency is a difference of the sender's own.
"""

from __future__ import annotations

from math import exp, isfinite

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.decision.links import MAX_CONTENTION, Link
from lasthop.errors import InvalidRequest

SMOOTHING = 8
"""Moving averages give a new sample one eighth, as TCP does for its round trip: a single odd one
is forgotten, a change of place is learned within a dozen messages."""

RATE_WINDOW: Micros = 5 * SECOND
"""Over how long rates are averaged: several round trips of a mobile network, so that both ends
average over the same messages."""

REPORT_AFTER: Micros = 2 * SECOND
"""How long the receiver waits for something to carry its report: applications that answer do so
within a second or two, and an own frame costs a radio wake-up."""


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """Goes with a message: the sender's time, and how fast it is sending, in bytes per second."""

    sent_at: Micros
    rate: int


class Echo(msgspec.Struct, frozen=True, array_like=True):
    """Comes back: the stamp, how long it stayed, and how fast data is coming in."""

    stamp: Stamp
    held_for: Micros
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


class Observer:
    """The sender's half, one for each channel."""

    def __init__(self, estimate: Estimate | None = None) -> None:
        self.estimate = estimate or Estimate()
        self._sending = RateMeter()

    def stamp(self, size: int, now: Micros) -> Stamp:
        """Count a message that leaves, and stamp it."""
        self._sending.count(size, now)
        return Stamp(now, self._sending.rate(now))

    def echoed(self, echo: Echo, now: Micros) -> bool:
        """Learn from what came back; false for what cannot be true, which changes nothing."""
        latency = now - echo.stamp.sent_at - echo.held_for
        if echo.held_for < 0 or latency < 0 or min(echo.rate, echo.stamp.rate) < 0:
            return False
        sample = echo.stamp.rate / echo.rate if echo.rate else MAX_CONTENTION
        if not echo.stamp.rate:
            sample = 1.0
        sample = min(max(sample, 1.0), MAX_CONTENTION)
        known = self.estimate
        if known.latency is None:
            known.latency, known.contention = latency, sample
        else:
            known.latency += (latency - known.latency) // SMOOTHING
            known.contention += (sample - known.contention) / SMOOTHING
        known.samples += 1
        return True


class Gauge:
    """Both halves at the sender, where the receiver acknowledges everything: an acknowledgement is
    the report, and costs nothing."""

    def __init__(self) -> None:
        self._observer = Observer()
        self._arriving = RateMeter()
        self.told_at: Micros | None = None
        """When somebody was last told of the estimate."""

    @property
    def estimate(self) -> Estimate:
        return self._observer.estimate

    @property
    def throughput(self) -> int:
        """Bytes per second that have arrived lately."""
        return self._arriving.rate(self._arriving.at)

    def left(self, size: int, now: Micros) -> Stamp:
        """A message leaves."""
        return self._observer.stamp(size, now)

    def arrived(self, stamp: Stamp, size: int, now: Micros) -> None:
        """It was acknowledged."""
        self._arriving.count(size, now)
        self._observer.echoed(Echo(stamp, 0, self._arriving.rate(now)), now)


class Reporter:
    """The receiver's half, one for each channel: only the latest stamp is worth returning."""

    def __init__(self, *, report_after: Micros = REPORT_AFTER) -> None:
        if report_after < 0:
            raise InvalidRequest("a report cannot be due in the past", report_after=report_after)
        self._report_after = report_after
        self._receiving = RateMeter()
        self._latest: tuple[Stamp, Micros] | None = None
        self._due: Micros | None = None

    def received(self, stamp: Stamp, *, size: int, now: Micros) -> None:
        """A stamped message has arrived."""
        self._receiving.count(size, now)
        self._latest = (stamp, now)
        if self._due is None:
            self._due = now + self._report_after

    @property
    def due(self) -> Micros | None:
        """When to send a report on its own if nothing has carried it by then."""
        return self._due

    def take(self, now: Micros) -> Echo | None:
        """The report to put onto what is going back now, if there is one to make."""
        if self._latest is None:
            return None
        stamp, came = self._latest
        self._latest = self._due = None
        return Echo(stamp, max(0, now - came), self._receiving.rate(came))


def contended(estimate: Estimate, *, threshold: float = 1.25) -> bool:
    """Whether a link loses or queues more than a fifth of what is put into it."""
    if not (isfinite(threshold) and threshold >= 1):
        raise InvalidRequest("a threshold of contention is at least 1", threshold=threshold)
    return estimate.contention > threshold
