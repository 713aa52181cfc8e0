"""Idle devices of lasthop: the device's end of the protocol, without an application behind it.

The SDK keeps an inbox, a handler and a task for every device; thousands of idle devices in one
process need none of that to answer heartbeats. For the gateway they look the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from bench.hop.jobs import Alive
from lasthop.clock import SECOND, Micros
from lasthop.runtime.clock import SystemClock
from lasthop.transport.link import ChannelLink, Ends
from lasthop.transport.stream import StreamLink
from lasthop.wire.hop.frames import CloseCode, Frame, Hello
from lasthop.wire.hop.handshake import Dialing, Opened
from lasthop.wire.hop.mapping import Mapping

APP = "default"


PHASES = 40
"""The number of groups of devices whose clocks tick at different moments: the alarms of a link ring
once a second, and devices in the field do not agree when a second begins."""


class Shifted:
    """A clock that is ahead of the real one by a fraction of a second."""

    def __init__(self, ahead: Micros) -> None:
        self._clock = SystemClock()
        self._ahead = ahead

    def now(self) -> Micros:
        return self._clock.now() + self._ahead


class Idlers:
    """Many idle devices that share a few sets of alarms."""

    def __init__(self) -> None:
        clocks = [Shifted(SECOND * phase // PHASES) for phase in range(PHASES)]
        self._ends = [Ends(self, clock) for clock in clocks]
        self._waiting: dict[ChannelLink, asyncio.Future[None]] = {}
        self._members: list[Idler] = []
        self._connected = 0

    async def join(self, port: int, name: str, *, source: str) -> Idler:
        """Connect one device and wait for its WELCOME."""
        loop = asyncio.get_running_loop()
        ends = self._ends[len(self._members) % PHASES]
        machine = Dialing(Hello(app=APP, device=name), mapping=Mapping.STREAM, now=ends.clock.now())
        idler = Idler(ends, machine)
        self._members.append(idler)
        welcomed = self._waiting[idler] = loop.create_future()
        await loop.create_connection(lambda: idler, "127.0.0.1", port, local_addr=(source, 0))
        await welcomed
        return idler

    def alive(self) -> Alive:
        """Return how many devices are connected, and their heartbeats."""
        now = time.monotonic()
        return Alive(
            connected=self._connected,
            pongs=sum(idler.pongs for idler in self._members),
            longest_gap=max((idler.longest_gap(now) for idler in self._members), default=0.0),
        )

    # Callbacks of the links.

    def connected(self, link: ChannelLink) -> None:
        """Do nothing when a link can carry bytes."""

    def received(self, link: ChannelLink, frames: Sequence[Frame]) -> None:
        """Ignore frames: idle devices receive no messages."""

    def welcomed(self, link: ChannelLink, opened: Opened) -> None:
        self._connected += 1
        self._waiting.pop(link).set_result(None)

    def paused(self, link: ChannelLink, paused: bool) -> None:
        """Ignore back pressure: idle devices send nothing that could wait."""

    def drained(self, link: ChannelLink) -> None:
        """Do nothing when a buffer is empty: idle devices send nothing large."""

    def lost(self, link: ChannelLink, reason: str) -> None:
        waiting = self._waiting.pop(link, None)
        if waiting is None:
            self._connected -= 1
        else:
            waiting.set_exception(ConnectionError(reason))


class Idler(StreamLink):
    """The link of one idle device."""

    __slots__ = ("_gap", "_heard", "pongs")

    def __init__(self, ends: Ends, machine: Dialing) -> None:
        super().__init__(ends, machine)
        self._gap = 0.0
        self._heard = time.monotonic()
        self.pongs = 0
        """Answers to heartbeats; nothing else arrives at a device that receives no messages."""

    def longest_gap(self, now: float) -> float:
        """Return the longest time in seconds in which nothing was received."""
        return max(self._gap, now - self._heard)

    def arrived(self, data: bytes, number: int | None = None) -> None:
        now = time.monotonic()
        if type(self.machine) is not Dialing:
            self.pongs += 1
            self._gap = max(self._gap, now - self._heard)
        self._heard = now
        super().arrived(data, number)

    def leave(self) -> None:
        """Close the connection with a goodbye."""
        self.close(CloseCode.BYE, "")
