"""Ranked topics between real processes, over TCP and REST: subscribe, read, retract, also across
kill -9 of the gateway.

About `core/ranked/` and `device/ranked/`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lasthop.device.client import Device
from lasthop.device.message import Message
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import DeviceProcess, GatewayProcess, eventually


def publish(gateway: GatewayProcess, body: str, rank: float, **fields: object) -> str:
    return gateway.push({"topic": "news", "body": body, "rank": rank, **fields})


def change_rank(gateway: GatewayProcess, id_: str, rank: float) -> None:
    body = json.dumps({"rank": rank}).encode()
    status, said = gateway.request("PATCH", f"/v1/messages/{id_}", body)
    assert status == 200, said


def bodies(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


async def until_unread(device: Device, count: int) -> None:
    async with asyncio.timeout(30):
        while await device.unread("news") != count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.timeout(120)
async def test_ranked_topics_across_kills(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "data")
    retracted: list[tuple[str, bool]] = []
    withdrawn: list[str] = []
    inbox = tmp_path / "phone.inbox"

    def phone() -> Device:
        device = Device(gateway.tcp, app="default", name="phone", inbox=inbox)
        device.on_retracted(lambda id_, had: retracted.append((id_, had)))
        device.on_withdrawn(withdrawn.append)
        return device

    try:
        async with phone() as device:
            handle = await device.subscribe(
                "news", max=2, threshold=2, policy="buffer", prefetch_limit=2
            )
            await handle.accepted()
            ids = [publish(gateway, f"n{rank}", rank) for rank in (3, 5, 1, 4)]
            await until_unread(device, 2)
            # The best two of all: one is kept here, the other comes with the answer.
            assert bodies(await device.read("news")) == ["n5", "n4"]
            change_rank(gateway, ids[0], 1)
            await until_unread(device, 0)
            assert retracted == [(ids[0][:16], False)]
            change_rank(gateway, ids[0], 3)
            await until_unread(device, 1)
            gateway.kill()
            # Without contact the best of what is here has to do.
            await asyncio.sleep(0)
            assert bodies(await device.read("news", timeout=0.2)) == ["n3"]
            assert bodies(await device.read("news", timeout=0.2)) == []
        gateway = gateway.again()
        async with phone() as device:
            await device.contact(timeout=30)
            late = publish(gateway, "late", 9)
            await until_unread(device, 1)
            assert bodies(await device.read("news")) == ["late"]
            assert bodies(await device.read("news")) == []
            change_rank(gateway, late, 0)
            await until(lambda: (late[:16], True) in retracted)
            # The gateway keeps a topic; its publisher withdraws it.
            gateway.request("PUT", "/v1/topics/news", b"{}")
            gateway.request("DELETE", "/v1/topics/news")
            await until(lambda: withdrawn == ["news"])
        for id_ in (*ids[:2], ids[3], late):
            status = gateway.get_json(f"/v1/messages/{id_}?wait=final&timeout=20")
            assert status["summary"]["states"] == {"delivered": 1}, status
    finally:
        gateway.kill()


@pytest.mark.timeout(120)
def test_the_reference_device_reads_and_the_commands_rank(
    up: GatewayProcess, lasthop: Lasthop, tmp_path: Path
) -> None:
    made = lasthop("topic", "advertise", "cli.news", "--title", "News", "--url", up.http, "--json")
    assert made.json["subscribers"] == 0
    inbox = ["--inbox", str(tmp_path / "reader.inbox")]
    terms = ["--topic", "cli.news", "--max", "2", "--threshold", "2"]
    with DeviceProcess(up.tcp, "reader", tmp_path / "errors", *inbox, *terms) as device:

        def subscribed() -> bool:
            rows = up.request("GET", "/v1/devices/reader/subscriptions")
            return rows[0] == 200 and b'"max":2' in rows[1]

        eventually(subscribed, "the device is subscribed")
        ids = [up.push({"topic": "cli.news", "body": f"n{r}", "rank": r}) for r in (3, 1, 5, 4)]
        change = lasthop("topic", "rank", ids[0], "6", "--url", up.http, "--json")
        assert change.json["rank"] == 6
        device.terminate()
    with DeviceProcess(up.tcp, "reader", tmp_path / "errors", *inbox, *terms, "--read", "5") as one:
        shown = [json.loads(one.line())["body"] for _ in range(2)]
        assert one.wait() == 0
    assert shown == ["n3", "n5"]
    told = lasthop("explain", ids[0], "reader", "--url", up.http)
    assert "asked for by a read" in told.out or "sent ahead of a read" in told.out
    listed = lasthop("topic", "list", "--url", up.http, "--json").json
    assert [(row["topic"], row["subscribers"]) for row in listed] == [("cli.news", 1)]
    gone = lasthop("topic", "withdraw", "cli.news", "--url", up.http, "--json")
    assert gone.json == {"topic": "cli.news", "told": 1}
    failed = lasthop("topic", "withdraw", "cli.news", "--url", up.http, fails=True)
    assert "no such topic is advertised" in failed.error
