"""The demo's devices: the real SDK with an inbox on disk, each behind a link of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

from lasthop.device.client import Device
from lasthop.device.compose import SubscriptionOptions
from lasthop.device.handle import MessageHandle
from lasthop.device.message import Message
from lasthop.device.retry import Backoff
from lasthop.runtime.demo import messages
from lasthop.runtime.demo.emulator import EmulatedLink
from lasthop.runtime.demo.ledger import DemoLedger, Glance, LedgerLane
from lasthop.runtime.demo.script import NOTICES, TOPICS, DemoPerson, DemoTopic
from lasthop.runtime.failure import Failure

APP = "default"

FIRST_CONTACT = 60.0
"""Seconds within which a device must connect and subscribe."""

FIRST_RETRY, LONGEST_RETRY = 0.2, 0.5
"""Seconds between attempts to connect. Outages in the demo take seconds instead of minutes, so the
pauses are short too."""

LOOK_PATIENCE = 1.0
"""Seconds that a user waits for the gateway before the device shows what it has stored."""

STUCK = 30.0
"""Seconds after which the demo fails because a device has shown nothing at all."""

CLOSING = 15.0
"""Seconds within which devices must make everything durable and close their sessions."""


class Member:
    """A device, its link, and the application on it."""

    def __init__(
        self, person: DemoPerson, device: Device, link: EmulatedLink, ledger: DemoLedger
    ) -> None:
        self.person = person
        self.device = device
        self.link = link
        self._ledger = ledger

    @property
    def name(self) -> str:
        return self.person.name

    async def enter(self) -> None:
        """Connect the device, and subscribe it to all topics."""
        self.device.on_message(self._saw)
        handles = [await self.device.subscribe(NOTICES)]
        for topic in TOPICS:
            handles.append(await self._subscribe(topic))
        for handle in handles:
            await handle.accepted(timeout=FIRST_CONTACT)

    async def _subscribe(self, topic: DemoTopic) -> MessageHandle:
        options: SubscriptionOptions = {"max": topic.most, "threshold": topic.threshold}
        if topic.policy is not None:
            options |= {"policy": topic.policy, "prefetch_limit": topic.most}
        return await self.device.subscribe(topic.name, **options)

    def _saw(self, message: Message) -> None:
        demo_message = messages.read(message.body)
        # A message that no publisher of the demo sent is recorded under a lane that does not exist.
        publisher, number = (
            (demo_message.publisher, demo_message.number) if demo_message is not None else ("?", 0)
        )
        self._ledger.saw(LedgerLane(publisher, self.name), number, time.monotonic())

    async def look(self) -> None:
        """Read every ranked topic, as the device's user does."""
        for topic in TOPICS:
            try:
                async with asyncio.timeout(STUCK):
                    found = await self.device.read(topic.name, timeout=LOOK_PATIENCE)
            except TimeoutError:
                raise Failure(f"{self.name} is stuck: reading a topic took {STUCK:.0f} s") from None
            glances = []
            for message in found:
                demo_message = messages.read(message.body)
                glances.append(Glance(demo_message.number if demo_message else 0, message.rank))
            self._ledger.looked(
                self.name, topic.name, glances, most=topic.most, threshold=topic.threshold
            )


class Fleet:
    """All devices of the demo, as a context manager."""

    def __init__(
        self,
        people: Sequence[DemoPerson],
        gateway: tuple[str, int],
        *,
        inboxes: Path,
        ledger: DemoLedger,
        random: Random,
    ) -> None:
        self._people = people
        self._gateway = gateway
        self._inboxes = inboxes
        self._ledger = ledger
        self._random = random
        self._stack = AsyncExitStack()
        self.members: list[Member] = []

    async def __aenter__(self) -> Fleet:
        self._inboxes.mkdir(parents=True, exist_ok=True)
        try:
            for person in self._people:
                self.members.append(await self._stack.enter_async_context(self._open(person)))
            await asyncio.gather(*(member.enter() for member in self.members))
        except TimeoutError:
            await self._close()
            raise Failure("the devices could not connect; is the machine very busy?") from None
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def _close(self) -> None:
        """Close all devices at once; those that do not close in time are left, so that the demo
        ends when it is asked to."""
        for member in self.members:
            # A link with an outage would make every device wait to close its session.
            member.link.restore()
        closing = [asyncio.ensure_future(member.device.close()) for member in self.members]
        if closing:
            await asyncio.wait(closing, timeout=CLOSING)
        await self._stack.aclose()

    @asynccontextmanager
    async def _open(self, person: DemoPerson) -> AsyncIterator[Member]:
        # Each link has its own random numbers, so that one device does not change what happens to
        # others.
        chances = Random(self._random.random())
        link = EmulatedLink(person.profile, self._gateway, random=chances.random)
        async with link:
            device = Device(
                link.url,
                app=APP,
                name=person.name,
                inbox=self._inboxes / f"{person.name}.db",
                link=person.profile.name,
                network=f"demo-{person.profile.name}",
                backoff=Backoff(first=FIRST_RETRY, longest=LONGEST_RETRY, random=chances.random),
                # The probes that learn the heartbeat carry no messages, and would count as bytes.
                learn_heartbeat=False,
            )
            await device.open()
            yield Member(person, device, link, self._ledger)

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.members]

    @property
    def in_contact(self) -> int:
        return sum(member.device.connected for member in self.members)
