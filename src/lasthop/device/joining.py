"""One more channel beside the one that a device has: dialled, granted by the gateway, listened to
until it ends."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from typing import Protocol

from lasthop.device import desk
from lasthop.device.turns import Turns
from lasthop.errors import HopError
from lasthop.transport.address import Address
from lasthop.transport.dial import dial
from lasthop.transport.link import Ends, Link
from lasthop.wire.hop.frames import CloseCode, Frame, Hello
from lasthop.wire.hop.handshake import Opened


class Lines(Protocol):
    """Whoever speaks over one of several links."""

    def granted(self, link: Link) -> None:
        """The gateway takes this link for one of ours."""
        ...

    def paused(self, link: Link, paused: bool) -> None:
        """Its unsent buffer is full, or has room again."""
        ...

    def drained(self, link: Link) -> None:
        """What was handed to it has left its unsent buffer."""
        ...

    def lost(self, link: Link, reason: str) -> None:
        """It has ended."""
        ...


class Joining:
    """The owner of one such channel."""

    def __init__(
        self, hello: Hello, turns: Turns, lines: Lines, ends: Ends, *, labels: dict[Link, str]
    ) -> None:
        """`labels` is where it is noted as what the link was dialled."""
        self._hello = hello
        self._labels = labels
        self._turns = turns
        self._lines = lines
        self._ends = Ends(self, ends.clock, ends.alarms)
        self._answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def dial(self, address: Address, tls: ssl.SSLContext | None) -> str | None:
        """Open the channel; returns why there is none, or `None` when it is granted."""
        try:
            await dial(address, self._hello, self._ends, tls=tls)
        except TimeoutError:
            return "nobody answered in time"
        except OSError as error:
            return str(error) or type(error).__name__
        return await self._answer

    def connected(self, link: Link) -> None:
        self._labels[link] = self._hello.link or ""

    def received(self, link: Link, frames: Sequence[Frame]) -> None:
        self._turns.post(lambda session, now: session.received(frames, now))

    def welcomed(self, link: Link, opened: Opened) -> None:
        def then(granted: object) -> None:
            if isinstance(granted, HopError):
                link.fail(granted)
            elif not granted:
                link.close(CloseCode.BYE, "the conversation that it was to join is over")
            elif not link.over:
                self._lines.granted(link)
                self._settle(None)

        act = desk.joined(self._hello, opened.welcome, opened.frames)
        self._turns.post(act, then)

    def paused(self, link: Link, paused: bool) -> None:
        self._lines.paused(link, paused)

    def drained(self, link: Link) -> None:
        self._lines.drained(link)

    def lost(self, link: Link, reason: str) -> None:
        self._settle(reason)
        self._lines.lost(link, reason)

    def _settle(self, problem: str | None) -> None:
        if not self._answer.done():
            self._answer.set_result(problem)
