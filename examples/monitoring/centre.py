"""The monitoring centre: it follows the stream, and sends advice when the pulse is too high."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lasthop.device.client import Device
from lasthop.device.message import Message
from lasthop.device.streams import IncomingStream

HIGHEST_PULSE = 150


class Centre:
    """The device of the monitoring centre."""

    def __init__(self, url: str, inbox: Path) -> None:
        self.device = Device(url, app="safety", name="centre", inbox=inbox)
        self.readings: list[tuple[int, int]] = []
        """The readings, each a number and a pulse, in the order in which they arrived."""
        self.alarms: list[int] = []
        self.reports: list[str] = []
        self.measured = ""
        self._over = asyncio.Event()
        self._rest = b""

    async def open(self) -> None:
        """Connect to the gateway, and follow streams and messages."""
        await self.device.open()
        self.device.on_stream(self._follow)
        self.device.on_message(self._message)

    async def until_over(self) -> None:
        """Wait for the end of the stream."""
        async with asyncio.timeout(60):
            await self._over.wait()

    async def measure(self, what: str) -> None:
        """Ask the operative's sensors for a measurement, and keep the answer."""
        answer = await self.device.request("device:operative", what, timeout=30)
        self.measured = answer.text

    async def _follow(self, stream: IncomingStream) -> None:
        async for chunk in stream:
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                number, pulse = map(int, line.split())
                self.readings.append((number, pulse))
                if pulse > HIGHEST_PULSE and not self.alarms:
                    self.alarms.append(number)
                    await self.device.send(
                        "device:operative", "sit down, and drink something", priority=9
                    )
        self._over.set()

    def _message(self, message: Message) -> None:
        if not message.opens_stream:
            self.reports.append(message.text)
