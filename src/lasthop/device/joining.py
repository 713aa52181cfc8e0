"""Opens a further channel of a device beside its first: dials it, waits until the gateway grants
it, and listens to it until it ends."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from typing import Protocol

from lasthop.device import runner
from lasthop.device.lines import GatewayWay
from lasthop.device.turns import Turns
from lasthop.errors import HopError
from lasthop.transport.dial import dial
from lasthop.transport.link import ChannelLink, Ends
from lasthop.wire.hop.frames import CloseCode, Frame, Hello
from lasthop.wire.hop.handshake import Opened


class Speaker(Protocol):
    """The owner of a device's links, which sends over one of them."""

    def granted(self, link: ChannelLink) -> None:
        """Use a link that the gateway has granted."""
        ...

    def paused(self, link: ChannelLink, paused: bool) -> None:
        """Note that a link's unsent buffer is full, or has room again."""
        ...

    def drained(self, link: ChannelLink) -> None:
        """Note that everything that was sent over a link has left its unsent buffer."""
        ...

    def lost(self, link: ChannelLink, reason: str) -> None:
        """Note that a link has ended, and why."""
        ...


class Joining:
    """The owner of an additional channel, from dialling to its end."""

    def __init__(self, hello: Hello, turns: Turns, speaker: Speaker, ends: Ends) -> None:
        self._hello = hello
        self._turns = turns
        self._speaker = speaker
        self._way: GatewayWay
        self._ways: dict[ChannelLink, GatewayWay]
        self._ends = Ends(self, ends.clock, ends.alarms, checksums=ends.checksums)
        self._answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def dial(
        self, way: GatewayWay, ways: dict[ChannelLink, GatewayWay], tls: ssl.SSLContext | None
    ) -> str | None:
        """Open the channel, and record the address and link that it uses; return None if the
        gateway grants it, otherwise the reason why not."""
        self._way, self._ways = way, ways
        try:
            await dial(way.address, self._hello, self._ends, tls=tls)
        except TimeoutError:
            return "the gateway did not answer in time"
        except OSError as error:
            return str(error) or type(error).__name__
        return await self._answer

    def connected(self, link: ChannelLink) -> None:
        self._ways[link] = self._way

    def received(self, link: ChannelLink, frames: Sequence[Frame]) -> None:
        self._turns.post(lambda session, now: session.received(frames, now))

    def welcomed(self, link: ChannelLink, opened: Opened) -> None:
        def then(granted: object) -> None:
            if isinstance(granted, HopError):
                link.fail(granted)
            elif not granted:
                link.close(CloseCode.BYE, "the conversation that it was to join is over")
            elif not link.over:
                self._speaker.granted(link)
                self._settle(None)

        act = runner.joined(self._hello, opened.welcome, opened.frames)
        self._turns.post(act, then)

    def paused(self, link: ChannelLink, paused: bool) -> None:
        self._speaker.paused(link, paused)

    def drained(self, link: ChannelLink) -> None:
        self._speaker.drained(link)

    def lost(self, link: ChannelLink, reason: str) -> None:
        self._settle(reason)
        self._speaker.lost(link, reason)

    def _settle(self, problem: str | None) -> None:
        if not self._answer.done():
            self._answer.set_result(problem)
