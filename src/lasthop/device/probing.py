"""A heartbeat trial: an extra channel stays silent for a while, then pings to see whether it
survived."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence

from lasthop.clock import SECOND, Micros
from lasthop.transport.address import GatewayAddress
from lasthop.transport.dial import dial
from lasthop.transport.link import ChannelLink, EndsFor
from lasthop.wire.hop.frames import CloseCode, Frame, Hello, Ping
from lasthop.wire.hop.handshake import Opened
from lasthop.wire.hop.heartbeat import ANSWERED, PATIENCE, Beat

Pause = Callable[[Micros], Awaitable[None]]
"""A coroutine function that sleeps for the given number of microseconds."""

NEVER: Micros = 1 << 62


async def pause(micros: Micros) -> None:
    """Sleep for the given number of microseconds by the event loop's clock."""
    await asyncio.sleep(micros / SECOND)


class Silence:
    """A heartbeat that never sends a ping, and notices incoming frames."""

    def __init__(self) -> None:
        self.interval: Micros = NEVER
        self.heard = asyncio.Event()

    def on_received(self, now: Micros) -> Micros | None:
        self.heard.set()
        return None

    def on_sent(self, now: Micros) -> None:
        pass

    def next_due(self) -> Micros:
        return NEVER

    def check(self, now: Micros) -> Beat:
        return Beat.QUIET


class ProbeChannel:
    """The owner of a trial's channel."""

    def __init__(self, hello: Hello, ends: EndsFor) -> None:
        self._hello = hello
        self._ends = ends(self)
        self._silence = Silence()
        self._granted: asyncio.Future[Micros] = asyncio.get_running_loop().create_future()
        self._gone = asyncio.Event()
        self._link: ChannelLink | None = None

    async def open(self, address: GatewayAddress, tls: ssl.SSLContext | None) -> Micros | None:
        """Open the channel; return the silence that the gateway allows on it, None if it could not
        be opened."""
        try:
            self._link = await dial(address, self._hello, self._ends, tls=tls)
        except OSError:  # TimeoutError is a subclass.
            return None
        return await self._granted or None

    async def outlives(self, interval: Micros, pause: Pause) -> bool:
        """Whether the channel still works after this many microseconds of silence."""
        assert self._link is not None
        await pause(interval)
        if self._gone.is_set():
            return False
        self._silence.heard.clear()
        self._link.send([Ping()])
        waits = [self._silence.heard.wait(), self._gone.wait(), pause(PATIENCE)]
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return self._silence.heard.is_set() and not self._gone.is_set()

    def end(self, *, answered: bool) -> None:
        """Close the channel; the gateway logs whether the ping was `answered`."""
        if self._link is None:
            return
        if answered:
            self._link.close(CloseCode.BYE, ANSWERED)
        else:
            self._link.cut()

    # What the link reports.

    def connected(self, link: ChannelLink) -> None:
        pass

    def received(self, link: ChannelLink, frames: Sequence[Frame]) -> None:
        pass

    def welcomed(self, link: ChannelLink, opened: Opened) -> None:
        opened.connection.heartbeat = self._silence
        self._ends.alarms.set(link)
        self._settle((opened.welcome.heartbeat or 0) * SECOND)

    def paused(self, link: ChannelLink, paused: bool) -> None:
        pass

    def drained(self, link: ChannelLink) -> None:
        pass

    def lost(self, link: ChannelLink, reason: str) -> None:
        self._gone.set()
        self._settle(0)

    def _settle(self, granted: Micros) -> None:
        if not self._granted.done():
            self._granted.set_result(granted)
