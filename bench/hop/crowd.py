"""The process of many idle devices: `python -m bench.hop.crowd JOB`.

Each has its own connection and is ready to receive, as far as its protocol goes. They share a
source address per process, because an address has no more ports than some tens of thousands.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from bench.hop import amqp, mqtt
from bench.hop.conversation import Conversation, Ready, run
from bench.hop.jobs import AmqpDevice, Count, Crowd, HopDevice, MqttDevice
from bench.hop.link import Link

AT_ONCE = 50
"""Connections that are being opened at the same time."""


async def idle(job: Crowd, number: int) -> Link:
    """One device that waits for messages."""
    name = f"idle-{job.source}-{number}"
    match job.like:
        case MqttDevice(port=port, qos=qos):
            client = mqtt.Receiver(name, lambda _: None)
            await client.dial(port, source=job.source)
            await client.open()
            await client.subscribe(name, qos=qos)
            return client
        case AmqpDevice(port=port, prefetch=prefetch):
            receiver = amqp.Receiver(lambda _: None)
            await receiver.dial(port, source=job.source)
            await receiver.open()
            await receiver.declare(name, durable=False)
            await receiver.consume(name, prefetch=prefetch)
            return receiver
        case HopDevice():
            raise NotImplementedError


async def main(parent: Conversation) -> None:
    """Connect everyone, say so, and stay until told to leave."""
    job = msgspec.json.decode(sys.argv[1], type=Crowd)
    everyone: list[Link] = []
    gate = asyncio.Semaphore(AT_ONCE)

    async def join(number: int) -> None:
        async with gate:
            everyone.append(await idle(job, number))

    await asyncio.gather(*(join(number) for number in range(job.count)))
    parent.say(Ready())
    await parent.hear(Count)
    for link in everyone:
        link.hang_up()


if __name__ == "__main__":
    run(main)
