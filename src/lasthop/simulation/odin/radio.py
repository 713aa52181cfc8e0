"""A device's radio: how long it takes to wake, and what power it draws, from the packets alone.

A 3G radio is promoted to a dedicated channel (DCH) when there is something to carry, stays there
for some seconds after the last packet, then shares a channel (FACH) for some more before it sleeps.
A WiFi radio in power-save mode listens on for a moment. The numbers are assumptions of this model:
round values, of the size that one finds for networks and phones of the paper's time (a shared
channel draws about half the power of a dedicated one; operators choose their timers freely). A
promotion is charged at DCH power. Transfers of a few hundred bytes take no time.
"""

from __future__ import annotations

from dataclasses import dataclass

from lasthop.clock import MILLISECOND, SECOND, Micros


@dataclass(frozen=True, slots=True)
class RadioState:
    """A state of the radio after the last packet: how long it lasts, and its power."""

    name: str
    lasts: Micros
    watts: float


@dataclass(frozen=True, slots=True)
class Bearer:
    """A kind of network, as far as it matters for a small message."""

    name: str
    delay: Micros
    """Delay in one direction, in microseconds."""
    jitter: Micros
    wake: Micros
    """Time from sleep to the first packet, in microseconds."""
    tail: tuple[RadioState, ...]
    asleep: float
    """Power of the sleeping radio, in watts."""


WIFI = Bearer(
    "wifi",
    delay=15 * MILLISECOND,
    jitter=10 * MILLISECOND,
    wake=50 * MILLISECOND,
    tail=(RadioState("active", 250 * MILLISECOND, 0.70),),
    asleep=0.01,
)
UMTS = Bearer(
    "3g",
    delay=75 * MILLISECOND,
    jitter=60 * MILLISECOND,
    wake=2 * SECOND,
    tail=(RadioState("DCH", 5 * SECOND, 0.80), RadioState("FACH", 12 * SECOND, 0.46)),
    asleep=0.01,
)
BEARERS = (WIFI, UMTS)


class RehearsedRadio:
    """The radio of one device, which counts its energy."""

    def __init__(self, bearer: Bearer, now: Micros) -> None:
        self.bearer = bearer
        self.joules = 0.0
        self._since = now
        """The time up to which the energy has been counted."""
        self._last: Micros | None = None
        """When the last packet has passed or will pass; None: none has."""

    def packet(self, now: Micros) -> Micros:
        """Carry a packet; return how long it has to wait for the radio."""
        self.settle(now)
        waits = 0
        if self._asleep(now):
            waits = self.bearer.wake
            self.joules += self.bearer.tail[0].watts * waits / SECOND
            self._since = now + waits
        self._last = max(self._last or 0, now + waits)
        return self._last - now  # Packets during the wake-up wait as well.

    def settle(self, now: Micros) -> None:
        """Count the energy up to `now`."""
        if now <= self._since:
            return
        moment = self._since
        end = self._last
        for state in self.bearer.tail:
            if end is None:
                break
            end += state.lasts
            if moment < end:
                until = min(end, now)
                self.joules += state.watts * (until - moment) / SECOND
                moment = until
            if moment >= now:
                break
        self.joules += self.bearer.asleep * max(0, now - moment) / SECOND
        self._since = now

    def _asleep(self, now: Micros) -> bool:
        if self._last is None:
            return True
        return now >= self._last + sum(state.lasts for state in self.bearer.tail)
