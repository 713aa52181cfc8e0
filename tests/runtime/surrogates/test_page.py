"""The page about surrogates is true: its code runs as it stands.

About `docs/how-to/surrogates.md`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lasthop.device.client import Device
from lasthop.device.message import Message
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import eventually
from tests.runtime.surrogates.test_isolation import Served

PAGE = Path("docs/how-to/surrogates.md").read_text()


def block(language: str) -> str:
    """The only block of the page in this language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "album.py").write_text(block("python"))
    config = tmp_path / "lasthop.toml"
    config.write_text(block("toml").replace("/srv/surrogates", str(tmp_path)))
    with Served(tmp_path / "data", "--config", str(config)) as process:
        yield process


def ask(served: Served, method: str, body: str = "", **fields: Any) -> str:
    """Send a request to the phone; returns its id."""
    message = {"device": "phone", "body": body, "headers": {"method": method}}
    return served.push(message | {"reply_within": "60s"} | fields)


@pytest.mark.timeout(120)
async def test_the_surrogate_of_the_page_does_what_it_says(
    served: Served, tmp_path: Path, lasthop: Lasthop
) -> None:
    asked: list[str] = []
    said: list[Message] = []
    async with (
        Device(served.tcp, app="default", name="phone", inbox=tmp_path / "phone.inbox") as phone,
        Device(served.tcp, app="default", name="tablet", inbox=tmp_path / "t.inbox") as tablet,
    ):
        await (await tablet.subscribe("worries")).accepted()
        tablet.on_message(said.append)

        async def serve(message: Message) -> None:
            asked.append(message.text)
            if message.wants_reply:
                await phone.reply(message, "a, b, c", headers={"battery": "low"})

        phone.on_message(serve)
        await phone.contact(timeout=30)
        for _ in range(3):
            first = ask(served, "photos", "paris")
            assert await _reply(served, first) == "a, b, c"
        assert asked == ["paris"]  # The phone was asked once,
        assert await _reply(served, ask(served, "visits")) == "3"  # and the album three times.
        long = served.send("default", "x" * 500)
        served.until_told("default", long, "changed by its surrogate: body, title")
        status, body = served.request(
            "POST",
            "/v1/messages",
            json.dumps({"device": "phone", "body": "x", "content_type": "video/mp4"}).encode(),
        )
        assert status == 202
        dropped = json.loads(body)["id"]
        told = served.until_told("default", dropped, "dropped by its surrogate")
        assert told[-1].endswith("phones take no videos here")
        await _until(lambda: [m.text for m in said] == ["phone is about to go dark"])
        await _until(lambda: asked[1:] == ["x" * 140])
    lasthop("surrogate", "reload", "default", "--url", served.http)
    assert served.surrogate("default")["state"] == "ready"


async def _reply(served: Served, message: str) -> str:
    """Ask in a thread: the device answers on this one."""
    return await asyncio.to_thread(served.reply, "default", message)


async def _until(condition: Any) -> None:
    await asyncio.to_thread(eventually, condition, "it is so")
