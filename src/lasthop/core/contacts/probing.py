"""Probe channels, by which a device finds out how long its network keeps an idle connection.

Nothing travels over them but a heartbeat. The result is an event, so that the pipeline can tell
other devices on the same network before they try.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lasthop.clock import SECOND, Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.effects import CloseChannel, Send
from lasthop.core.session import Session
from lasthop.events import Kind
from lasthop.wire.hop.frames import CloseCode, Hello, Welcome
from lasthop.wire.hop.heartbeat import ANSWERED, UNHEARD

LEAST_HEARTBEAT: Micros = 10 * SECOND
"""The shortest heartbeat interval that a device can ask for: no device needs more than six pings a
minute."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A channel that a device opened to measure how long its network keeps it idle."""

    session: Session
    link: str
    network: str
    interval: Micros
    began: Micros


class Probes:
    """All open probes, at most one for each device."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self.others: Callable[[str], Micros | None] = lambda network: None
        """Returns the heartbeat interval that other devices found to work on a network; None if
        none is known."""
        self._by_channel: dict[int, Probe] = {}
        self._of_device: dict[int, int] = {}

    def heartbeat(self, hello: Hello) -> Micros:
        """Return the heartbeat interval that a device gets: the one that it asks for, within the
        limits."""
        limits = self._deliveries.limits
        if hello.heartbeat is None:
            return limits.heartbeat
        return max(LEAST_HEARTBEAT, min(hello.heartbeat * SECOND, limits.longest_heartbeat))

    def found(self, hello: Hello) -> int | None:
        """Return the seconds that other devices found to work on this device's network; None if
        none are known."""
        interval = self.others(hello.network) if hello.network else None
        return None if interval is None else interval // SECOND

    def begin(
        self, session: Session, channel: int, hello: Hello, incarnation: bytes, now: Micros
    ) -> None:
        """Begin a probe for a device, whether it is in contact or not."""
        device = session.device.number
        older = self._of_device.get(device)
        if older is not None:
            gone = CloseChannel(older, CloseCode.REPLACED, "another probe began")
            self._deliveries.effects.append(gone)
            self._forget(older)
        interval = self.heartbeat(hello)
        probe = Probe(session, hello.link or "", hello.network or "", interval, now)
        self._by_channel[channel] = probe
        self._of_device[device] = channel
        welcome = Welcome(
            incarnation=incarnation,
            epoch=session.epoch,
            max_frame=self._deliveries.limits.max_frame,
            heartbeat=interval // SECOND,
        )
        # The HELLO may have registered the device, so the answer waits for that to be durable.
        self._deliveries.commits.when_durable(partial(self._answer, channel, welcome))

    def _answer(self, channel: int, welcome: Welcome, now: Micros) -> None:
        if channel in self._by_channel:
            self._deliveries.effects.append(Send(channel, [welcome]))

    def lost(self, channel: int, reason: str, now: Micros) -> bool:
        """Record the result of a probe whose channel has ended; return False if the channel was no
        probe."""
        probe = self._forget(channel)
        if probe is None:
            return False
        outcome = self._outcome(probe, reason, now)
        if outcome is not None:
            self._deliveries.commits.record(
                Kind.HEARTBEAT,
                now,
                probe.session,
                reason=outcome,
                link=probe.link,
                network=probe.network,
                channel=channel,
                interval=probe.interval,
            )
        return True

    def _outcome(self, probe: Probe, reason: str, now: Micros) -> str | None:
        """Return what the end of a probe tells about the network; None if it ended for another
        reason."""
        # It ended before one heartbeat interval of silence: the network was not tested.
        if now - probe.began < probe.interval:
            return None
        if reason == ANSWERED:
            return "answered"
        # Silence from a device that has left the network says nothing about the network.
        there = any(line.network == probe.network for line in probe.session.lines)
        return "missed" if reason == UNHEARD and there else None

    def _forget(self, channel: int) -> Probe | None:
        probe = self._by_channel.pop(channel, None)
        if probe is not None and self._of_device.get(probe.session.device.number) == channel:
            del self._of_device[probe.session.device.number]
        return probe
