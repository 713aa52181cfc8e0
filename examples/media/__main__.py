"""Run the media service: `python -m examples.media`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from examples.gateway import a_gateway
from examples.media.phone import Phone
from lasthop.device.client import Device

SETTINGS = f"""
[surrogates.media]
class = "examples.media.album:Album"
path = "{Path(__file__).parents[2]}"
"""

PATIENCE = 30.0
"""Seconds that a viewer waits for an answer."""


@dataclass
class Seen:
    """What the viewers saw, and how many requests the phone answered for it."""

    lists: list[str] = field(default_factory=list)
    photos: list[str] = field(default_factory=list)
    news: list[str] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    """Requests that reached the phone."""


async def ask(viewer: Device, method: str, body: str) -> str:
    """Call an operation of the service `media`, and return the text of the answer."""
    answer = await viewer.request(
        "service:media", body, timeout=PATIENCE, headers={"method": method}
    )
    return answer.text


async def scenario(say: Callable[[str], None] = print) -> Seen:
    """Run the example with one phone and five viewers, and return what they saw."""
    seen = Seen()
    with a_gateway(SETTINGS) as gateway:
        async with AsyncExitStack() as stack:
            phone = Phone(gateway.tcp, gateway.directory / "phone.inbox")
            await phone.open()
            viewers = [
                await stack.enter_async_context(
                    Device(gateway.tcp, app="media", name=name, inbox=gateway.directory / name)
                )
                for name in ("anna", "bert", "cleo", "dora", "emil")
            ]
            anna = viewers[0]
            news: asyncio.Queue[str] = asyncio.Queue()
            anna.on_message(lambda message: news.put_nowait(message.text))
            await (await anna.subscribe("photos.#")).accepted()

            await phone.take("paris")
            seen.news.append(await asyncio.wait_for(news.get(), PATIENCE))
            say(f"anna hears of a new photo: {seen.news[-1]}")

            for viewer in viewers:
                seen.lists.append(await ask(viewer, "list", "paris"))
                seen.photos.append(await ask(viewer, "photo", "paris-1"))
            say(f"five people saw {seen.photos[0]!r}; the phone was asked {dict(phone.asked)}")

            name = await ask(anna, "take", "paris")
            seen.news.append(await asyncio.wait_for(news.get(), PATIENCE))
            seen.lists.append(await ask(anna, "list", "paris"))
            say(f"anna asked for another one and heard of {name}; the list is new as well")

            await phone.device.close()
            seen.lists.append(await ask(viewers[4], "list", "paris"))
            seen.photos.append(await ask(viewers[4], "photo", "paris-1"))
            say("the phone is off, and emil sees what it had")
            seen.asked = phone.asked
    return seen


if __name__ == "__main__":
    asyncio.run(scenario())
