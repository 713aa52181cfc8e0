"""The operative's phone: it streams the readings of the sensors, and answers questions to them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from lasthop.device.client import Device
from lasthop.device.message import Message


class Operative:
    """The phone of somebody who works on a power line and wears sensors."""

    def __init__(self, url: str, inbox: Path) -> None:
        self.device = Device(url, app="safety", name="operative", inbox=inbox, link="satellite")
        self.advice: list[str] = []
        self._heard = asyncio.Condition()

    async def open(self) -> None:
        """Connect to the gateway, and wait until there is contact."""
        await self.device.open()
        self.device.on_message(self._message)
        await self.device.contact(timeout=30)

    async def stream(self, pulses: Iterable[int], *, half_way: asyncio.Event) -> None:
        """Send every reading of the sensors as a line of the stream; set `half_way` in the
        middle."""
        readings = list(pulses)
        async with await self.device.open_stream("device:centre", title="pulse") as stream:
            for number, pulse in enumerate(readings):
                await stream.write(b"%d %d\n" % (number, pulse))
                if number == len(readings) // 2:
                    half_way.set()
        await stream.closed()

    async def reach_a_village(self, url: str) -> None:
        """Switch from the satellite link to a mobile network."""
        await self.device.switch(url, link="mno")

    async def log(self, symptom: str) -> None:
        """Send a symptom to the centre, with low priority."""
        await self.device.send("device:centre", symptom, priority=1)

    async def until_advised(self) -> None:
        """Wait until advice of the centre has arrived."""
        async with asyncio.timeout(30), self._heard:
            await self._heard.wait_for(lambda: bool(self.advice))

    async def _message(self, message: Message) -> None:
        if message.wants_reply:
            # The centre waits for the answer, so the sensors measure at once.
            await self.device.reply(message, "128/84" if message.text == "blood pressure" else "?")
            return
        async with self._heard:
            self.advice.append(message.text)
            self._heard.notify_all()
