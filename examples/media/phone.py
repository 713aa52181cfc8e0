"""The phone: it takes photos, answers requests for them, and publishes the names of new ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from lasthop.device.client import Device
from lasthop.device.message import Message
from lasthop.wire.hop.services import Service, ServiceOperation

MEDIA = Service(
    "media",
    about="Photos by place",
    operations=(
        ServiceOperation("list", takes="a place", gives="names, one a line"),
        ServiceOperation("photo", takes="a name", gives="image/x-words"),
        ServiceOperation("take", takes="a place", gives="a name"),
    ),
)


class Phone:
    """A device that offers the service `media`."""

    def __init__(self, url: str, inbox: Path) -> None:
        self.device = Device(url, app="media", name="phone", inbox=inbox)
        self.asked: Counter[str] = Counter()
        """How often each operation was requested from the phone itself."""
        self._photos: dict[str, str] = {}

    async def open(self) -> None:
        """Connect to the gateway and offer the service."""
        await self.device.open()
        self.device.on_message(self._serve)
        await (await self.device.offer(MEDIA)).accepted()

    async def take(self, place: str) -> str:
        """Take a photo, publish its name to subscribers of the place, and return the name."""
        name = f"{place}-{len(self._photos) + 1}"
        self._photos[name] = f"a view of {place}"
        await self.device.publish(f"photos.{place}", name)
        return name

    async def _serve(self, message: Message) -> None:
        operation = dict(message.headers.extra).get("method", "")
        self.asked[operation] += 1
        if operation == "list":
            here = [name for name in self._photos if name.startswith(f"{message.text}-")]
            await self.device.reply(message, "\n".join(here))
        elif operation == "photo":
            forever = {"cache-control": "max-age=31536000"}
            view = self._photos.get(message.text, "nothing of that name")
            await self.device.reply(message, view, content_type="image/x-words", headers=forever)
        elif operation == "take":
            await self.device.reply(message, await self.take(message.text))
