"""One member of the social network, with a device of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lasthop.device.client import Device
from lasthop.device.handle import Settlement
from lasthop.device.message import Message
from lasthop.device.requests import Gathered

PLACE, NOTE = {"kind": "place"}, {"kind": "note"}


class Member:
    """A member of the network: sends and receives notes, asks and answers."""

    def __init__(self, url: str, name: str, inbox: Path, *, free: bool) -> None:
        self.name = name
        self.device = Device(url, app="social", name=name, inbox=inbox)
        self.places: dict[str, str] = {}
        """The place of each member, by name, as the member announced it."""
        self.notes: list[str] = []
        self._free = free
        self._news = asyncio.Condition()

    async def open(self) -> None:
        """Connect to the gateway, and receive messages."""
        await self.device.open()
        self.device.on_message(self._heard)

    async def be_at(self, place: str) -> None:
        """Announce to all members where this member is."""
        await self.device.send("app:", place, headers=PLACE)

    async def join(self, group: str) -> None:
        """Join a group."""
        await (await self.device.join_group(group)).accepted()

    async def agree(self, group: str, note: str) -> Settlement:
        """Send a note to all members of a group or to none, and return what was decided."""
        sent = await self.device.send(
            f"group:{group}", note, atomic=True, expires_in=30, headers=NOTE
        )
        return await sent.settled(timeout=60)

    async def follow(self, name: str) -> None:
        """Subscribe to the notes of another member."""
        await (await self.device.subscribe(f"people.{name}")).accepted()

    async def post(self, note: str) -> None:
        """Publish a note to the followers of this member."""
        await self.device.publish(f"people.{self.name}", note, headers=NOTE)

    async def ask_around(self, question: str, *, patience: float) -> Gathered:
        """Ask all members a question, and wait `patience` seconds for their answers."""
        return await self.device.gather("app:", question, timeout=patience)

    async def until(self, *, places: int = 0, notes: int = 0) -> None:
        """Wait until at least so many places and notes have arrived."""
        async with asyncio.timeout(30), self._news:
            await self._news.wait_for(
                lambda: len(self.places) >= places and len(self.notes) >= notes
            )

    async def _heard(self, message: Message) -> None:
        kind = dict(message.headers.extra).get("kind")
        sender = (message.source or "").removeprefix("device:")
        if message.wants_reply:
            await self.device.reply(message, "yes" if self._free else "no")
        elif kind == "place":
            self.places[sender] = message.text
        elif kind == "note":
            self.notes.append(f"{sender}: {message.text}")
        async with self._news:
            self._news.notify_all()
