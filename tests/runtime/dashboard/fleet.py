"""A small fleet on a real gateway, so that every page of the dashboard has something to show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from lasthop.decision.preferences import Preferences
from lasthop.device.client import Device
from lasthop.device.exchange.binding import Text
from lasthop.device.exchange.exchange import Exchange
from lasthop.wire.hop.services import Service, ServiceOperation
from tests.runtime.processes import GatewayProcess

PRICING = Service(
    "pricing",
    about="What things cost",
    operations=(
        ServiceOperation("price", takes="text/plain", gives="text/plain", about="Of one thing"),
        ServiceOperation("forget", takes="text/plain", about="What was asked before"),
    ),
)

SURROGATE = """
from lasthop.surrogate import Decision, Drop, Mail, Surrogate


class Doorkeeper(Surrogate):
    def to_device(self, mail: Mail) -> Decision | None:
        self.state["seen"] = self.state.get("seen", 0) + 1
        return Drop("no videos here") if mail.content_type.startswith("video/") else None
"""


def with_surrogate(directory: Path) -> list[str]:
    """Options of a gateway at which a class acts for the devices of the app `photos`."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "doorkeeper.py").write_text(SURROGATE)
    file = directory / "lasthop.toml"
    file.write_text(f'[surrogates.photos]\nclass = "doorkeeper:Doorkeeper"\npath = "{directory}"\n')
    return ["--config", str(file)]


PREFERENCES = {
    "links": [
        {"label": "wifi", "tariff": {}},
        {"label": "mno", "tariff": {"per_volume": 4_000_000}},
    ],
    "limits": [
        {"amount": 500_000, "measure": "bytes", "period": "day", "link": "mno"},
        {"amount": 4000, "measure": "messages", "period": "day"},
    ],
}

NETWORKS = {"wifi": "ssid:home", "mno": "operator:1"}


class Fleet:
    """The devices, and what they do."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self.gateway = gateway
        self.heard: list[str] = []
        self.story = ""
        """A message that was delivered to alice-phone."""

    async def publish(self, count: int = 1, **message: object) -> str:
        """Over REST, one after the other; returns the last id."""
        identity = ""
        for n in range(count):
            body = {"body": f"message {n}", **message}
            identity = await asyncio.to_thread(self.gateway.push, body)
        return identity


async def _listen(fleet: Fleet, device: Device) -> None:
    async for message in device.messages():
        fleet.heard.append(message.text)
        if message.wants_reply:
            await device.reply(message, f"{message.text} Yes: all is well.")


@asynccontextmanager
async def fleet(gateway: GatewayProcess) -> AsyncIterator[Fleet]:
    """Four devices in contact on two links, one that is away with a full mailbox, topics with ranks
    and without, budgets, and messages at every kind of end."""
    async with AsyncExitStack() as stack:
        made = Fleet(gateway)
        devices = {}
        for name, link in {
            "alice-phone": "wifi",
            "bob-phone": "mno",
            "carol-tablet": "wifi",
            "door-sensor": "mno",
        }.items():
            device = Device(
                gateway.tcp,
                app="default",
                name=name,
                link=link,
                network=NETWORKS[link],
                learn_heartbeat=False,
            )
            devices[name] = await stack.enter_async_context(device)
            await device.contact(timeout=30)
            task = asyncio.create_task(_listen(made, device))
            stack.callback(task.cancel)
        shop = Device(
            gateway.tcp, app="default", name="shop", link="wifi", network=NETWORKS["wifi"]
        )
        devices["shop"] = await stack.enter_async_context(shop)
        till = Exchange(shop, Text())
        price = {"price": lambda received: f"{received.value} is 3.50", "forget": lambda _: None}
        await (await till.serve(PRICING, price)).accepted(timeout=30)
        preferences = msgspec.convert(PREFERENCES, Preferences)
        await (await devices["alice-phone"].prefer(preferences)).accepted(timeout=30)
        for name in ("alice-phone", "bob-phone"):
            await (await devices[name].subscribe("news")).accepted(timeout=30)
        for name in ("carol-tablet", "door-sensor"):
            terms = await devices[name].subscribe("offers", max=4, threshold=1.0)
            await terms.accepted(timeout=30)
        gateway.request("PUT", "/v1/topics/news", b'{"title":"What happens"}')
        gateway.request("POST", "/v1/devices", b'{"name":"dave-laptop","user":"dave"}')
        gateway.request("PUT", "/v1/groups/family", b'{"title":"Alice and Bob"}')
        gateway.request("PUT", "/v1/queues/jobs", b'{"title":"To be done by one"}')
        for path in ("groups/family/members/alice-phone", "groups/family/members/bob-phone"):
            gateway.request("PUT", f"/v1/{path}")
        gateway.request("PUT", "/v1/queues/jobs/consumers/dave-laptop")
        gateway.request("POST", "/v1/devices", b'{"name":"camera"}', **{"X-App": "photos"})
        for body in (
            b'{"device":"camera","body":"smile"}',
            b'{"device":"camera","content_type":"video/mp4"}',
        ):
            gateway.request(
                "POST",
                "/v1/messages",
                body,
                **{"X-App": "photos", "Content-Type": "application/json"},
            )
        await made.publish(3, to="queue:jobs")
        made.story = await made.publish(
            device="alice-phone", title="Your parcel", body="It is at the door."
        )
        await made.publish(12, topic="news", title="News")
        for rank in range(24):
            await made.publish(topic="offers", rank=(rank * 7) % 11)
        await made.publish(5, device="dave-laptop", title="While you were away", priority=7)
        await made.publish(device="dave-laptop", body="gone soon", ttl="1s")
        cancelled = await made.publish(device="dave-laptop", body="on second thought")
        gateway.request("DELETE", f"/v1/messages/{cancelled}")
        yield made
