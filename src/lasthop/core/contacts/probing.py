"""Channels that are there to be lost: a device finds out how long its network leaves one in peace.

Nothing travels on them but a heartbeat. What becomes of them is an event, so that the pipeline can
tell other devices on the same network before they try.
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
"""A device that asks for more than six pings a minute asks too much."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One such channel."""

    session: Session
    link: str
    network: str
    interval: Micros
    began: Micros


class Probes:
    """All of them, at most one of a device."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self.others: Callable[[str], Micros | None] = lambda network: None
        """What is known of a network from other devices."""
        self._by_channel: dict[int, Probe] = {}
        self._of_device: dict[int, int] = {}

    def heartbeat(self, hello: Hello) -> Micros:
        """What a device gets that asks for so much silence."""
        limits = self._deliveries.limits
        if hello.heartbeat is None:
            return limits.heartbeat
        return max(LEAST_HEARTBEAT, min(hello.heartbeat * SECOND, limits.longest_heartbeat))

    def found(self, hello: Hello) -> int | None:
        """Seconds that other devices found to work where this one is."""
        interval = self.others(hello.network) if hello.network else None
        return None if interval is None else interval // SECOND

    def begin(
        self, session: Session, channel: int, hello: Hello, incarnation: bytes, now: Micros
    ) -> None:
        """A device in contact, or not, wants to try how long a channel lives."""
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
        # It may be the first that was heard of this device.
        self._deliveries.commits.when_durable(partial(self._answer, channel, welcome))

    def _answer(self, channel: int, welcome: Welcome, now: Micros) -> None:
        if channel in self._by_channel:
            self._deliveries.effects.append(Send(channel, [welcome]))

    def lost(self, channel: int, reason: str, now: Micros) -> bool:
        """A channel has ended; whether it was one of these."""
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
        """What it tells about the network; nothing, if it ended for another reason."""
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
