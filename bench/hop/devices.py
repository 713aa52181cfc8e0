"""The receiving side of every system, behind one shape."""

from __future__ import annotations

import asyncio
from typing import Protocol

from bench.hop import amqp, mqtt
from bench.hop.jobs import AmqpDevice, DeviceJob, HopDevice, MqttDevice
from bench.hop.link import Link
from bench.hop.meter import Meter


class Device(Protocol):
    """A device that is connected and hands what comes in to a meter."""

    async def guard(self, here: asyncio.Future[None]) -> None:
        """Wait for what was announced; raises when the connection ends before."""
        ...

    async def close(self) -> None:
        """Hang up."""
        ...


class Linked:
    """Devices of MQTT and AMQP."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def guard(self, here: asyncio.Future[None]) -> None:
        await self._link.guard(here)

    async def close(self) -> None:
        self._link.hang_up()


async def connect(job: DeviceJob, meter: Meter) -> Device:
    """A device that is ready to receive."""
    match job:
        case MqttDevice():
            client = mqtt.Receiver("device" + job.topic, meter.take)
            await client.dial(job.port)
            await client.open()
            await client.subscribe(job.topic, qos=job.qos)
            return Linked(client)
        case AmqpDevice():
            receiver = amqp.Receiver(meter.take)
            await receiver.dial(job.port)
            await receiver.open()
            await receiver.declare(job.queue, kind=job.kind)
            await receiver.consume(job.queue, prefetch=job.prefetch)
            return Linked(receiver)
        case HopDevice():
            raise NotImplementedError
