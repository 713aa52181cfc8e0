"""A device in a process of its own, killed in the middle of things, again and again.

About `device/handover.py` and `device/inbox_sqlite.py`.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import textwrap
from pathlib import Path

import pytest

from tests.device.gateway import live_gateway, until

pytestmark = pytest.mark.anyio

TRANSACTIONAL = """
    import asyncio, sys
    from lasthop.device.client import Device

    def record(message, transaction):
        transaction.execute("CREATE TABLE IF NOT EXISTS mine (body TEXT)")
        transaction.execute("INSERT INTO mine VALUES (?)", (message.text,))

    async def main(url, inbox):
        async with Device(url, app="shop", name="phone", inbox=inbox) as device:
            device.transactional(record)
            await device.run()

    asyncio.run(main(*sys.argv[1:]))
"""

PLAIN = """
    import asyncio, sys
    from lasthop.device.client import Device

    async def show(message):
        print(message.text, message.redelivered, flush=True)
        await asyncio.sleep(0.001)

    async def main(url, inbox):
        async with Device(url, app="shop", name="phone", inbox=inbox) as device:
            device.on_message(show)
            await device.run()

    asyncio.run(main(*sys.argv[1:]))
"""


async def start(script: str, url: str, inbox: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        textwrap.dedent(script),
        url,
        str(inbox),
        stdout=asyncio.subprocess.PIPE,
    )


async def test_a_transactional_handler_processes_exactly_once_across_kill_9(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox.db"
    expected = [str(number) for number in range(2000)]
    async with live_gateway() as gateway:
        process = await start(TRANSACTIONAL, gateway.tcp_url, inbox)
        await until(lambda: gateway.engine.connections == 1, timeout=20)
        await until(lambda: gateway.engine.gateway.registry.find("shop", "phone") is not None)
        for start_at in range(0, 2000, 400):
            await gateway.publish(*expected[start_at : start_at + 400])
            await asyncio.sleep(start_at / 200_000)
            process.kill()
            await process.wait()
            process = await start(TRANSACTIONAL, gateway.tcp_url, inbox)
            await until(lambda: gateway.engine.connections == 1, timeout=20)
        await until(lambda: not gateway.engine.gateway.deliveries.items, timeout=20)
        process.kill()
        await process.wait()
    database = sqlite3.connect(inbox)
    bodies = [body for (body,) in database.execute("SELECT body FROM mine ORDER BY rowid")]
    database.close()
    assert bodies == expected


async def test_any_other_handler_is_warned_of_what_it_may_have_seen(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox.db"
    expected = [str(number) for number in range(600)]
    seen: dict[str, bool] = {}

    def look(line: bytes) -> None:
        body, redelivered = line.decode().split()
        assert body not in seen or redelivered == "True"
        seen[body] = True

    async with live_gateway() as gateway:
        process = await start(PLAIN, gateway.tcp_url, inbox)
        await until(lambda: gateway.engine.gateway.registry.find("shop", "phone") is not None)
        await gateway.publish(*expected)
        lives = 0
        while len(seen) < len(expected):
            assert process.stdout is not None
            for _ in range(200):
                look(await asyncio.wait_for(process.stdout.readline(), 20))
                if len(seen) == len(expected):
                    break
            process.kill()
            for line in (await process.stdout.read()).splitlines():
                look(line)
            await process.wait()
            lives += 1
            if len(seen) < len(expected):
                process = await start(PLAIN, gateway.tcp_url, inbox)
    assert list(seen) == expected
    assert lives > 1
