"""A switchboard that writes everything down, and welcomes whoever says HELLO."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from lasthop.delivery.channel import Channel
from lasthop.device.clock import DeviceClock
from lasthop.transport.address import parse
from lasthop.transport.dial import dial
from lasthop.transport.link import ChannelLink, Ends
from lasthop.wire.hop.frames import Frame, Hello, Welcome
from tests.transport.hand import Diary

WELCOME = Welcome(incarnation=b"12345678", epoch=1, heartbeat=100)


class Board:
    """Hears channels."""

    def __init__(self) -> None:
        self.welcome = WELCOME
        self.channels: list[Channel] = []
        self.frames: list[tuple[int, Frame]] = []
        self.pauses: list[tuple[int, bool]] = []
        self.ends: list[tuple[int, str]] = []
        self.drains: list[int] = []

    def opened(self, channel: Channel) -> None:
        self.channels.append(channel)
        channel.number = len(self.channels)

    def received(self, channel: Channel, frames: Sequence[Frame]) -> None:
        self.frames += [(channel.number, frame) for frame in frames]
        if isinstance(frames[0], Hello):
            channel.send([self.welcome])

    def paused(self, channel: Channel, paused: bool) -> None:
        self.pauses.append((channel.number, paused))

    def drained(self, channel: Channel) -> None:
        self.drains.append(channel.number)

    def lost(self, channel: Channel, reason: str) -> None:
        self.ends.append((channel.number, reason))


class Caller:
    """A device's end, played by a test."""

    def __init__(self) -> None:
        self.diary = Diary()
        self.ends = Ends(self.diary, DeviceClock())
        self.link: ChannelLink

    async def call(self, url: str) -> None:
        """Dial, and wait for the WELCOME or the end."""
        self.link = await dial(parse(url), Hello(app="shop", device="phone"), self.ends)
        await until(lambda: bool(self.diary.opened or self.diary.ends))


@asynccontextmanager
async def calling(url: str) -> AsyncIterator[Caller]:
    caller = Caller()
    await caller.call(url)
    try:
        yield caller
    finally:
        if not caller.link.over:
            caller.link.cut()
            await until(lambda: caller.link.over)
        caller.ends.alarms.close()


async def until(happened: Callable[[], bool]) -> None:
    """Wait for something that happens on the same loop."""
    async with asyncio.timeout(10):
        while not happened():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
