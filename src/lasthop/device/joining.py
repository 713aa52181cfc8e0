"""One more channel beside the one that a device has: dialled, granted by the gateway, listened to
until it ends."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from typing import Protocol

from lasthop.device import runner
from lasthop.device.lines import Way
from lasthop.device.turns import Turns
from lasthop.errors import HopError
from lasthop.transport.dial import dial
from lasthop.transport.link import ChannelLink, Ends
from lasthop.wire.hop.frames import CloseCode, Frame, Hello
from lasthop.wire.hop.handshake import Opened


class Speaker(Protocol):
    """Whoever speaks over one of several links."""

    def granted(self, link: ChannelLink) -> None:
        """The gateway takes this link for one of ours."""
        ...

    def paused(self, link: ChannelLink, paused: bool) -> None:
        """Its unsent buffer is full, or has room again."""
        ...

    def drained(self, link: ChannelLink) -> None:
        """What was handed to it has left its unsent buffer."""
        ...

    def lost(self, link: ChannelLink, reason: str) -> None:
        """It has ended."""
        ...


class Joining:
    """The owner of one such channel."""

    def __init__(self, hello: Hello, turns: Turns, speaker: Speaker, ends: Ends) -> None:
        self._hello = hello
        self._turns = turns
        self._speaker = speaker
        self._way: Way
        self._ways: dict[ChannelLink, Way]
        self._ends = Ends(self, ends.clock, ends.alarms)
        self._answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def dial(
        self, way: Way, ways: dict[ChannelLink, Way], tls: ssl.SSLContext | None
    ) -> str | None:
        """Open the channel, and note by which way; returns why there is none, or `None` when it is
        granted."""
        self._way, self._ways = way, ways
        try:
            await dial(way.address, self._hello, self._ends, tls=tls)
        except TimeoutError:
            return "nobody answered in time"
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
