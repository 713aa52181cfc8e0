"""Plays a script: every publisher, device and link acts at its times, until the end of the script
or until `curtain` is set.

No action is interrupted: a publisher that waits for an answer still gets it, so that the ledger
knows the outcome of every message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from lasthop.runtime.demo.beside import first_failure
from lasthop.runtime.demo.fleet import Fleet, Member
from lasthop.runtime.demo.publishers import PapInitiator, RestService
from lasthop.runtime.demo.script import Script

Entries: TypeAlias = Sequence[tuple[float, Callable[[], Awaitable[None]]]]
"""The actions of one participant, each with its time in seconds."""


class Cast:
    """All participants of the demo: the devices and the publishers."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        editor: RestService,
        shop: RestService,
        herald: RestService,
        initiator: PapInitiator,
    ) -> None:
        self.fleet = fleet
        self.editor = editor
        """The service that publishes to ranked topics."""
        self.shop = shop
        """The service that sends messages to single devices."""
        self.herald = herald
        """The service that sends messages to all devices."""
        self.initiator = initiator

    @property
    def bytes_on_links(self) -> int:
        """The number of bytes on all links so far, both ways."""
        return sum(m.link.up_bytes + m.link.down_bytes for m in self.fleet.members)

    async def play(self, script: Script, curtain: asyncio.Event) -> None:
        """Play one script from its beginning; all links work before and after it."""
        self.clear_weather()
        playing = _Playing(curtain)
        try:
            with first_failure():
                async with asyncio.TaskGroup() as parts:
                    for entries in self._parts(script):
                        parts.create_task(playing.each(entries))
                    for member in self.fleet.members:
                        looks = script.looks[member.name]
                        parts.create_task(playing.each([(at, member.look) for at in looks]))
                        outages = script.outages[member.name]
                        parts.create_task(playing.weather(member, outages))
                    parts.create_task(playing.all_of(script.seconds))
        finally:
            self.clear_weather()

    def _parts(self, script: Script) -> Iterator[Entries]:
        """Yield the actions of each publisher."""
        names = self.fleet.names
        yield [(at, partial(self.editor.news, topic, rank)) for at, topic, rank in script.news]
        yield [(at, partial(self.herald.notice, names)) for at in script.notices]
        yield [(at, partial(self.shop.order, device)) for at, device in script.orders]
        yield [(at, partial(self.initiator.push, device)) for at, device in script.pushes]

    def clear_weather(self) -> None:
        """End the outages of all links."""
        for member in self.fleet.members:
            member.link.restore()


class _Playing:
    """The clock of one run of a script."""

    def __init__(self, curtain: asyncio.Event) -> None:
        self._curtain = curtain
        self._began = asyncio.get_running_loop().time()

    async def until(self, at: float) -> bool:
        """Wait for a time of the script; return False if the run is ended before."""
        left = self._began + at - asyncio.get_running_loop().time()
        if left > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._curtain.wait()
        return not self._curtain.is_set()

    async def all_of(self, seconds: float) -> None:
        """Wait until the end of the script."""
        await self.until(seconds)

    async def each(self, entries: Entries) -> None:
        """Do each action at its time, or late if the one before takes longer."""
        for at, act in entries:
            if not await self.until(at):
                return
            await act()

    async def weather(self, member: Member, outages: Sequence[tuple[float, float]]) -> None:
        for start, end in outages:
            if not await self.until(start):
                return
            member.link.lose()
            await self.until(end)
            member.link.restore()
