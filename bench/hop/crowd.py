"""The process of many idle devices: `python -m bench.hop.crowd JOB`.

Each device has its own connection and is ready to receive, as its protocol requires. All devices of
a process share a source address; several processes are needed because an address has only some tens
of thousands of ports.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import msgspec

from bench.hop import amqp, mqtt
from bench.hop.conversation import Conversation, Ready, run
from bench.hop.idlers import Idlers
from bench.hop.jobs import AmqpDevice, Count, Crowd, HopDevice, MqttDevice

AT_ONCE = 50
"""The number of connections that are being opened at the same time."""


async def join(job: Crowd, number: int, idlers: Idlers) -> Callable[[], None]:
    """Connect one device that waits for messages; return the function that disconnects it."""
    name = f"idle-{job.source}-{number}"
    match job.like:
        case MqttDevice(port=port, qos=qos):
            client = mqtt.Receiver(name, lambda _: None)
            await client.dial(port, source=job.source)
            await client.open()
            await client.subscribe(name, qos=qos)
            return client.hang_up
        case AmqpDevice(port=port, prefetch=prefetch):
            receiver = amqp.Receiver(lambda _: None)
            await receiver.dial(port, source=job.source)
            await receiver.open()
            await receiver.declare(name, durable=False)
            await receiver.consume(name, prefetch=prefetch)
            return receiver.hang_up
        case HopDevice(port=port):
            return (await idlers.join(port, name, source=job.source)).leave


async def main(parent: Conversation) -> None:
    """Connect all devices, report that, and report their state until no more orders come."""
    job = msgspec.json.decode(sys.argv[1], type=Crowd)
    idlers = Idlers()
    gate = asyncio.Semaphore(AT_ONCE)
    leave: list[Callable[[], None]] = []

    async def one(number: int) -> None:
        await asyncio.sleep(number / job.count * job.spread)
        async with gate:
            leave.append(await join(job, number, idlers))

    await asyncio.gather(*(one(number) for number in range(job.count)))
    parent.say(Ready())
    while await parent.hear(Count) is not None:
        parent.say(idlers.alive())
    for goodbye in leave:
        goodbye()
    await asyncio.sleep(0.5)


if __name__ == "__main__":
    run(main)
