"""Run the monitoring of operatives: `python -m examples.monitoring`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from examples.gateway import a_gateway
from examples.monitoring.centre import Centre
from examples.monitoring.operative import Operative

PULSES = [*range(70, 160), *range(160, 70, -1)] * 5
"""Readings of the pulse: it rises and falls five times, once for each climb."""


@dataclass
class Shift:
    """What the centre and the operative received during one shift."""

    readings: list[tuple[int, int]] = field(default_factory=list)
    alarms: list[int] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    measured: str = ""
    reports: list[str] = field(default_factory=list)


async def scenario(say: Callable[[str], None] = print) -> Shift:
    """Run the example with one operative and the centre, and return what they received."""
    with a_gateway() as gateway:
        async with AsyncExitStack() as stack:
            centre = Centre(gateway.tcp, gateway.directory / "centre")
            operative = Operative(gateway.tcp, gateway.directory / "operative")
            for one in (centre, operative):
                await one.open()
                stack.push_async_callback(one.device.close)

            half_way = asyncio.Event()
            sending = asyncio.create_task(operative.stream(PULSES, half_way=half_way))
            await half_way.wait()
            await operative.reach_a_village(gateway.websocket)
            say("half of the readings sent by satellite; a mobile network takes over")

            await operative.until_advised()
            say(f"pulse too high at reading {centre.alarms[0]}: {operative.advice[0]}")

            await centre.measure("blood pressure")
            say(f"the centre had the blood pressure taken: {centre.measured}")

            await operative.log("a little dizzy, better now")
            await sending
            await centre.until_over()
            whole = centre.readings == list(enumerate(PULSES))
            say(f"{len(centre.readings)} readings, in order and once each: {whole}")
            shift = Shift(centre.readings, centre.alarms, operative.advice, centre.measured)
        shift.reports = centre.reports
    return shift


if __name__ == "__main__":
    asyncio.run(scenario())
