"""One channel of a device over one of its ways, from the HELLO to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from lasthop.clock import Micros
from lasthop.device import runner
from lasthop.device.turns import Turns
from lasthop.device.way import GatewayWay
from lasthop.errors import HopError
from lasthop.transport.connected import HeldConnection
from lasthop.transport.link import ChannelLink, EndsFor
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Close, CloseCode, Frame, Hello, OtherWays
from lasthop.wire.hop.handshake import Opened
from lasthop.wire.hop.heartbeat import Pinging


class LineOwner(Protocol):
    """The owner of a device's channels."""

    def granted(self, line: GatewayLine, opened: Opened) -> None:
        """Use a channel that the gateway has granted."""
        ...

    def not_ours(self, line: GatewayLine) -> None:
        """Dial again: the gateway's numbers are not those of the device."""
        ...

    def told(self, line: GatewayLine, ways: Sequence[tuple[str, str]]) -> None:
        """Learn other ways from the gateway, each a link and a URL."""
        ...

    def paused(self, link: ChannelLink, paused: bool) -> None:
        """Note that a link's unsent buffer is full, or has room again."""
        ...

    def drained(self, link: ChannelLink) -> None:
        """Note that everything that was sent over a link has left its unsent buffer."""
        ...

    def lost(self, line: GatewayLine, link: ChannelLink, reason: str) -> None:
        """Note that a channel has ended, and why."""
        ...


class GatewayLine:
    """One channel of a device: owns its link, and speaks for it."""

    def __init__(
        self, way: GatewayWay, hello: Hello, turns: Turns, owner: LineOwner, ends: EndsFor
    ) -> None:
        self.way = way
        self.hello = hello
        self.link: ChannelLink | None = None
        self.left = False
        """Whether the device has left this channel by itself, so that its end is no news."""
        self.welcomed_here = False
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        """The result of the HELLO: None if the channel was granted, otherwise the reason."""
        self._turns = turns
        self._owner = owner
        self._ends = ends(self)

    async def say(self, connected: HeldConnection) -> None:
        """Send the HELLO over a connection; raise OSError if the connection has ended."""
        await connected.say(self.hello, self._ends)

    def leave(self, reason: str) -> None:
        """Take leave of the gateway over this channel."""
        self.left = True
        self._settle(reason)
        if self.link is not None:
            self.link.close(CloseCode.BYE, reason)

    @property
    def said(self) -> Close | None:
        """The gateway's CLOSE; None if the last CLOSE is this device's own, because the gateway
        could not be understood."""
        link = self.link
        return link.closed if link is not None and link.machine.error is None else None

    @property
    def heartbeat(self) -> Pinging | None:
        """The heartbeat of the open channel."""
        machine = self.link.machine if self.link is not None else None
        heartbeat = machine.heartbeat if type(machine) is Open else None
        return heartbeat if type(heartbeat) is Pinging else None

    @property
    def timeout(self) -> Micros:
        """The time after which an answer is missing, as far as the round trips tell."""
        machine = self.link.machine if self.link is not None else None
        return machine.roundtrip.timeout if type(machine) is Open else 0

    # What the link reports.

    def connected(self, link: ChannelLink) -> None:
        self.link = link
        if self.left:
            link.close(CloseCode.BYE, "another way was quicker")

    def received(self, link: ChannelLink, frames: Sequence[Frame]) -> None:
        if not self.left:
            self._turns.post(lambda session, now: session.received(frames, now))
            self._hear(frames)

    def _hear(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            if type(frame) is OtherWays:
                self._owner.told(self, frame.ways)

    def welcomed(self, link: ChannelLink, opened: Opened) -> None:
        def then(useful: object) -> None:
            if self.left or link.over:
                return
            if isinstance(useful, HopError):
                link.fail(useful)
            elif useful:
                self.welcomed_here = True
                self._settle(None)
                self._owner.granted(self, opened)
                self._hear(opened.frames)
            elif self.hello.join:
                link.close(CloseCode.BYE, "the conversation that it was to join is over")
            else:
                self._owner.not_ours(self)

        if self.left:
            return
        if self.hello.join:
            act = runner.joined(self.hello, opened.welcome, opened.frames)
        else:
            act = runner.welcomed(self.hello, opened.welcome, opened.frames, ordered=link.ordered)
        self._turns.post(act, then)

    def paused(self, link: ChannelLink, paused: bool) -> None:
        self._owner.paused(link, paused)

    def drained(self, link: ChannelLink) -> None:
        self._owner.drained(link)

    def lost(self, link: ChannelLink, reason: str) -> None:
        self._settle(reason)
        self._owner.lost(self, link, reason)

    def _settle(self, problem: str | None) -> None:
        if not self.answer.done():
            self.answer.set_result(problem)
