"""Run the social network: `python -m examples.social`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from examples.gateway import a_gateway
from examples.social.member import Member

NAMES = ("anna", "bert", "cleo", "dora")


@dataclass
class Heard:
    """What the members received from each other."""

    places: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    outcome: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] | None = None


async def scenario(say: Callable[[str], None] = print) -> Heard:
    """Run the example with four members, and return what they received."""
    heard = Heard()
    with a_gateway() as gateway:
        async with AsyncExitStack() as stack:
            people = {
                name: Member(gateway.tcp, name, gateway.directory / name, free=name != "bert")
                for name in NAMES
            }
            for member in people.values():
                await member.open()
                stack.push_async_callback(member.device.close)
            anna, bert, cleo, dora = people.values()
            for member in (anna, bert, cleo):
                await member.join("climbers")
            await dora.follow("anna")

            await anna.be_at("Oslo")
            await bert.be_at("Bergen")
            await asyncio.gather(*(member.until(places=2) for member in people.values()))
            say(f"dora knows where people are: {dora.places}")

            settled = await bert.agree("climbers", "at the wall at six")
            await asyncio.gather(*(member.until(notes=1) for member in (anna, bert, cleo)))
            say(f"the climbers have heard the same: {settled.outcome}")

            await anna.post("new shoes")
            await dora.until(notes=1)
            say(f"dora follows anna: {dora.notes}")

            await dora.device.close()
            found = await cleo.ask_around("who is free tonight?", patience=3)
            heard.answers = {name: reply.text for name, reply in found.replies.items()}
            say(f"cleo asked around: {heard.answers}; no word of {found.missing}")

            heard.places = {name: member.places for name, member in people.items()}
            heard.notes = {name: member.notes for name, member in people.items()}
            heard.outcome, heard.missing = settled.outcome, found.missing
    return heard


if __name__ == "__main__":
    asyncio.run(scenario())
