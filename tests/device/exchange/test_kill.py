"""An asker in a process of its own, killed while it waits: its callback gets every outcome.

About `device/exchange/exchange.py`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lasthop.device.client import Device
from lasthop.device.exchange.binding import Text
from lasthop.device.exchange.exchange import Exchange
from lasthop.device.exchange.received import Received
from tests.device.gateway import APP, live_gateway, until
from tests.device.test_kill import start

ASKER = """
    import asyncio, sys
    from lasthop.device.client import Device
    from lasthop.device.exchange.binding import Text
    from lasthop.device.exchange.exchange import Exchange

    def told(received):
        outcome = type(received.error).__name__ if received.error else received.value
        print(outcome, "again" if received.redelivered else "", flush=True)

    async def main(url, inbox):
        device = Device(url, app="shop", name="phone", inbox=inbox, learn_heartbeat=False)
        async with device:
            exchange = Exchange(device, Text())
            exchange.register("prices", told)
            exchange.on_message(told)
            if {first}:
                await exchange.send_callback("device:shop", "tea", "prices", timeout=60)
                await exchange.send_callback("device:shop", "silence", "prices", timeout=0.5)
            await device.run()

    asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.timeout(60)
async def test_a_callback_gets_every_outcome_across_kill_9(tmp_path: Path) -> None:
    held: list[Received[str]] = []
    async with live_gateway() as gateway:
        shop = Device(gateway.tcp_url, app=APP, name="shop", learn_heartbeat=False)
        async with shop:
            await shop.contact(timeout=5)
            Exchange(shop, Text()).on_message(held.append)
            asker = await start(ASKER.format(first=True), gateway.tcp_url, tmp_path / "inbox")
            await until(
                lambda: [received.value for received in held] == ["tea", "silence"], timeout=30
            )
            asker.kill()
            await asker.wait()
            handle = await held[0].reply("3.50")
            await handle.accepted(timeout=5)

            # Killed in mid-call, or just after: then they come again, and say so.
            first = await lives(gateway.tcp_url, tmp_path, 2)
            assert first == ["3.50", "TimeoutError"]
            await gateway.publish("bye")
            second = await lives(gateway.tcp_url, tmp_path, until_line="bye")
            assert set(second) <= {"3.50 again", "TimeoutError again", "bye", "bye again"}
            # What comes after them was shown, so they are done.
            await gateway.publish("once more")
            third = await lives(gateway.tcp_url, tmp_path, until_line="once more")
            assert set(third) <= {"bye again", "once more"}


async def lives(url: str, folder: Path, count: int = 0, until_line: str = "") -> list[str]:
    """Let the asker come back, and kill it when it has said so many lines, or this one."""
    asker = await start(ASKER.format(first=False), url, folder / "inbox")
    assert asker.stdout is not None
    said: list[str] = []
    while len(said) < count or not (count or any(line.startswith(until_line) for line in said)):
        async with asyncio.timeout(20):
            said.append((await asker.stdout.readline()).decode().strip())
    asker.kill()
    await asker.wait()
    return said
