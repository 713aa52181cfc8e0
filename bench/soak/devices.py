"""The process of devices that come and go: `python -m bench.soak.devices JOB`."""

from __future__ import annotations

import asyncio
import random
import sys

import msgspec

from bench.hop.conversation import Conversation, Ready, run
from bench.hop.idlers import APP
from bench.soak.jobs import Arrived, Coming, Report, device_name
from lasthop.device.client import Device
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.message import Message

AT_ONCE = 50
"""The number of devices that connect for the first time at the same time."""


class LastingInbox(MemoryInbox):
    """An inbox in memory that a device can open again, as it would a file."""

    def close(self) -> None:
        """Do nothing: another connection of the device goes on with this inbox."""


class Roamers:
    """Devices of the SDK, each with an inbox that outlives its connections."""

    def __init__(self, job: Coming) -> None:
        self._job = job
        self._last: dict[int, int] = {}
        self._staying = asyncio.Event()
        self._gate = asyncio.Semaphore(AT_ONCE)
        self.seen = Arrived(received=0, duplicated=0, misordered=0, contacts=0)

    def stay(self) -> None:
        """Let all devices connect, and stay."""
        self._staying.set()

    async def live(self, number: int) -> None:
        """Connect one device again and again."""
        inbox = LastingInbox()
        while True:
            device = Device(
                f"tcp://127.0.0.1:{self._job.port}",
                app=APP,
                name=device_name(number),
                inbox=inbox,
                learn_heartbeat=False,
            )
            async with self._gate:
                await device.open()
                device.transactional(lambda message, _: self._take(number, message))
                await device.contact(timeout=60)
            self.seen.contacts += 1
            await self._for(self._job.online)
            if self._staying.is_set():
                await device.run()
                return
            await device.close()
            await self._for(self._job.away)

    async def _for(self, mean: float) -> None:
        try:
            await asyncio.wait_for(self._staying.wait(), random.expovariate(1 / mean))
        except TimeoutError:
            return

    def _take(self, number: int, message: Message) -> None:
        found = int(message.body)
        last = self._last.get(number, -1)
        self.seen.received += 1
        self.seen.duplicated += found == last
        self.seen.misordered += found < last
        self._last[number] = max(found, last)


async def main(parent: Conversation) -> None:
    """Run all devices, and report until no more orders come."""
    job = msgspec.json.decode(sys.argv[1], type=Coming)
    roamers = Roamers(job)
    living = [asyncio.ensure_future(roamers.live(number)) for number in range(job.count)]
    while roamers.seen.contacts < job.count:
        await asyncio.sleep(0.05)
        for each in living:
            if each.done():
                each.result()
    parent.say(Ready())
    while (order := await parent.hear(Report)) is not None:
        if order.last:
            roamers.stay()
        parent.say(roamers.seen)
    for each in living:
        each.cancel()


if __name__ == "__main__":
    run(main)
