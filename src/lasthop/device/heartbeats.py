"""Decides how often a device pings: as seldom as its network allows. The device finds out by trials
how seldom that is.

Facts about networks are kept in the inbox. While the device is connected, trials run one at a time
on extra channels that may be lost; a device that connects only briefly runs none.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from lasthop.clock import SECOND, Clock, Micros
from lasthop.decision.heartbeat import NetworkPatience, Networks
from lasthop.device.probing import Pause, ProbeChannel, pause as real_pause
from lasthop.transport.link import ChannelLink
from lasthop.wire.hop.heartbeat import Pinging

log = logging.getLogger("lasthop.device")

MEMORY = "lasthop.networks"
"""The name under which the inbox keeps the facts about networks."""

FIRST_TRIAL: Micros = 90 * SECOND
"""How long a device must be connected before its first trial: for a shorter contact a trial is not
worth its cost."""

BETWEEN: Micros = 10 * SECOND
"""The pause between a conclusive trial and the next one."""

LATER: Micros = 1800 * SECOND
"""The longer pause before the next trial if there was nothing to try, or if the last trial was
inconclusive."""

AT_ONCE: Micros = 120 * SECOND
"""If the gateway is reached again within this time after a channel fell silent, the gateway is
assumed to have been running all along: only the connection had died."""


class Company(Protocol):
    """The interface of a device's contact as trials use it."""

    @property
    def there(self) -> bool: ...

    @property
    def place(self) -> str: ...

    async def welcomed_once(self) -> None: ...

    async def probe(self, heartbeat: int) -> tuple[ProbeChannel, Micros | None]: ...

    async def renew(self) -> None: ...


class Heartbeats:
    """The ping intervals of one device's channels, and the trials that find them."""

    def __init__(
        self,
        networks: Networks,
        *,
        clock: Clock,
        keep: Callable[[bytes], None],
        pause: Pause = real_pause,
    ) -> None:
        self._networks = networks
        self._clock = clock
        self._keep = keep
        self._pause: Callable[[Micros], Awaitable[None]] = pause
        self._granted: dict[ChannelLink, Micros] = {}
        self._died: tuple[str, Micros, Micros] | None = None
        """The place, the interval and the time of the last channel that died of silence."""

    def asks(self, place: str) -> int | None:
        """Return how many seconds of silence to ask the gateway for on this network; None while
        nothing is known about the network."""
        patience = self._networks.on(place)
        return patience.interval() // SECOND if patience.alive >= 0 else None

    def welcomed(self, link: ChannelLink, place: str) -> None:
        """Set the ping interval of a new channel. If the last channel died of silence a moment ago,
        note that its interval was too long."""
        heartbeat = getattr(link.machine, "heartbeat", None)
        if isinstance(heartbeat, Pinging):
            self._granted[link] = heartbeat.interval
        if self._died is not None:
            died_at, interval, when = self._died
            self._died = None
            if died_at == place and self._clock.now() - when < AT_ONCE:
                log.info("a channel did not survive %d s of silence", interval // SECOND)
                self._networks.on(place).missed(interval)
                self._keep(self._networks.dump())
        self._pace(place)

    def told(self, place: str, interval: Micros) -> None:
        """Use the ping interval that other devices have found to work on this network, according to
        the gateway."""
        self._networks.on(place).told(interval)

    def lost(self, link: ChannelLink, place: str) -> None:
        """Note that a channel has ended; if a ping was not answered, it died of silence."""
        self._granted.pop(link, None)
        heartbeat = getattr(link.machine, "heartbeat", None)
        if isinstance(heartbeat, Pinging) and heartbeat.unanswered:
            self._died = (place, heartbeat.interval, self._clock.now())

    async def learn(self, company: Company) -> None:
        """Run trials until the device is closed."""
        rest = FIRST_TRIAL
        while True:
            await company.welcomed_once()
            await self._pause(rest)
            rest = BETWEEN
            if not company.there:
                continue
            place = company.place
            patience = self._networks.on(place)
            interval = patience.next_trial(self._clock.now())
            if interval is None:
                rest = LATER
                continue
            survived = await self._trial(company, interval)
            # A trial says nothing if the network changed, or was lost, while it ran.
            if survived is None or company.place != place or not company.there:
                rest = LATER
                continue
            await self._learned(company, patience, interval, survived)

    async def _trial(self, company: Company, interval: Micros) -> bool | None:
        """Whether a channel survived so much silence; None if the trial was inconclusive."""
        seconds = -(-interval // SECOND)
        probe, granted = await company.probe(seconds)
        if granted is None or granted < interval:
            probe.end(answered=True)
            return None
        survived = await probe.outlives(interval, self._pause)
        probe.end(answered=survived)
        if survived:
            return True
        # Tell a connection that died of silence from a gateway that cannot be reached at all.
        again, granted = await company.probe(seconds)
        again.end(answered=True)
        return None if granted is None else False

    async def _learned(
        self, company: Company, patience: NetworkPatience, interval: Micros, survived: bool
    ) -> None:
        patience.tried(interval, survived=survived, now=self._clock.now())
        self._keep(self._networks.dump())
        verdict = "survived" if survived else "did not survive"
        log.info("%s: a channel %s %d s of silence", company.place, verdict, interval // SECOND)
        self._pace(company.place)
        wanted = patience.interval()
        if patience.settled and all(wanted > granted for granted in self._granted.values()):
            # The gateway granted shorter intervals: ask for the longer one over a new channel.
            await company.renew()

    def _pace(self, place: str) -> None:
        wanted = self._networks.on(place).interval()
        for link, granted in self._granted.items():
            heartbeat = getattr(link.machine, "heartbeat", None)
            if isinstance(heartbeat, Pinging):
                heartbeat.interval = min(wanted, granted)
                link.hasten()
