"""The page about groups and queues is true: its code runs as it stands, over TCP.

About `docs/how-to/groups.md`.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from lasthop.device.client import Device
from lasthop.device.message import Message
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import GatewayProcess

PAGE = Path("docs/how-to/groups.md")


def code() -> dict[str, Any]:
    """Everything that the page defines."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


page = code()


class Member:
    """A device that collects what it is shown."""

    def __init__(self, url: str, name: str) -> None:
        self.device = Device(url, app="default", name=name)
        self.got: asyncio.Queue[Message] = asyncio.Queue()

    async def __aenter__(self) -> Member:
        await self.device.open()
        self.device.on_message(self.got.put_nowait)
        await page["enlist"](self.device)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.device.close()

    async def next(self) -> Message:
        async with asyncio.timeout(30):
            return await self.got.get()


@pytest.mark.timeout(120)
async def test_the_code_on_the_page_runs(up: GatewayProcess) -> None:
    async with Member(up.tcp, "anna") as anna, Member(up.tcp, "bert") as bert:
        members = up.get_json("/v1/groups/crew")["devices"]
        assert sorted(members) == ["anna", "bert"]

        # To all or to none.
        settled = await page["switch"](anna.device)
        assert settled.outcome == "released"
        for member in (anna, bert):
            message = await member.next()
            assert (message.text, message.group) == ("Switch to channel 9", "crew")

        # Who acts first.
        screen: dict[str, str] = {}
        page["watch"](bert.device, screen)
        key = up.push({"group": "crew", "body": "the door", "claim": True})
        first, second = await anna.next(), await bert.next()
        screen[second.id] = second.text
        assert await page["answer_the_door"](anna.device, first)
        lost = await page["answer_the_door"](bert.device, second)
        assert (bool(lost), lost.by) == (False, "anna")
        assert not screen
        assert await page["answer_the_door"](anna.device, first), "asking again"
        status = up.get_json(f"/v1/messages/{key}?wait=settled")
        assert (status["outcome"], status["claimed_by"]) == ("claimed", "anna")

        # One of many.
        for number in range(6):
            up.push({"to": "queue:jobs", "body": str(number)})
        jobs = [await anna.next() for _ in range(3)] + [await bert.next() for _ in range(3)]
        assert sorted(message.text for message in jobs) == list("012345")
        assert {message.queue for message in jobs} == {"jobs"}
        assert not any(message.redelivered for message in jobs)

    # Without bert nobody is shown it.
    async with Member(up.tcp, "anna") as anna:
        sent = await anna.device.send("group:crew", "never", atomic=True, expires_in=1)
        assert (await sent.settled(timeout=30)).outcome == "aborted"
        assert anna.got.empty()


@pytest.mark.timeout(120)
async def test_everyone_of_an_app_is_a_target(up: GatewayProcess, lasthop: Lasthop) -> None:
    async with Member(up.tcp, "anna") as anna, Member(up.tcp, "bert") as bert:
        up.push({"to": "app:", "body": "by REST"})
        await (await bert.device.send("app:", "by a device")).accepted()
        await asyncio.to_thread(lasthop, "push", "app:", "by hand", "--url", up.http)
        for member in (anna, bert):
            texts = [(await member.next()).text for _ in range(3)]
            assert texts == ["by REST", "by a device", "by hand"]


@pytest.mark.timeout(120)
def test_groups_and_queues_on_the_command_line(up: GatewayProcess, lasthop: Lasthop) -> None:
    at = ("--url", up.http)
    lasthop("device", "register", "clerk", *at)
    assert lasthop("group", "make", "team", *at).lines == ["team has 0 members"]
    assert lasthop("group", "add", "team", "clerk", *at).lines == ["clerk is in team"]
    assert lasthop("group", "show", "team", *at).lines == ["clerk"]
    assert "team" in lasthop("group", "list", *at).out
    shown = lasthop("push", "group:team", "hello", "--atomic", "--ttl", "1h", *at, "--json").json
    assert len(shown["id"]) == 32
    assert lasthop("group", "drop", "team", "clerk", *at).lines == ["clerk is not in team"]
    assert lasthop("group", "remove", "team", *at).lines == [
        "team is removed; 0 devices were in it"
    ]
    made = lasthop("queue", "make", "tasks", "--patience", "5", *at)
    assert made.lines == ["tasks has 0 messages and 0 consumers"]
    assert lasthop("queue", "add", "tasks", "clerk", *at).lines == [
        "clerk takes messages from tasks"
    ]
    lasthop("push", "queue:tasks", "work", *at)
    assert lasthop("queue", "show", "tasks", *at).lines[0] == "1 messages wait"
    assert lasthop("queue", "list", "--json", *at).json[-1]["waiting"] == 1
    failed = lasthop("queue", "remove", "tasks", *at, fails=True)
    assert "the queue is not empty" in failed.error
    assert lasthop("queue", "drop", "tasks", "clerk", *at).lines == [
        "clerk does not take messages from tasks"
    ]
