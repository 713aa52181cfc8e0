"""The receiving side of every system, with one interface."""

from __future__ import annotations

import asyncio
from typing import Protocol

from bench.hop import amqp, mqtt
from bench.hop.idlers import APP
from bench.hop.jobs import AmqpDevice, DeviceJob, HopDevice, MqttDevice
from bench.hop.link import Guard
from bench.hop.meter import Meter
from lasthop.device.client import Device


class Receiver(Protocol):
    """A connected device that passes what it receives to a meter."""

    async def guard(self, here: asyncio.Future[None]) -> None:
        """Wait for the announced messages; raise if the connection ends before."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class Linked:
    """A device of MQTT or AMQP."""

    def __init__(self, link: Guard) -> None:
        self._link = link

    async def guard(self, here: asyncio.Future[None]) -> None:
        await self._link.guard(here)

    async def close(self) -> None:
        self._link.hang_up()


class SdkDevice:
    """A device of lasthop: the SDK with a transactional handler.

    The handler takes the message and nothing else; that it was received and handled is durable, in
    the inbox's transaction, before it is acknowledged.
    """

    def __init__(self, job: HopDevice, meter: Meter) -> None:
        # Without checksums, which the peers' protocols do not have either.
        self._device = Device(
            f"tcp://127.0.0.1:{job.port}",
            app=APP,
            name=job.device,
            inbox=job.inbox,
            checksums=False,
        )
        self._meter = meter

    async def open(self) -> None:
        """Connect and install the handler."""
        await self._device.open()
        take = self._meter.take
        self._device.transactional(lambda message, _: take((message.body,)))
        await self._device.contact(timeout=10)

    async def guard(self, here: asyncio.Future[None]) -> None:
        running = asyncio.ensure_future(self._device.run())
        both: set[asyncio.Future[None]] = {here, running}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not here.done():
            running.result()
        running.cancel()

    async def close(self) -> None:
        await self._device.close()


async def connect(job: DeviceJob, meter: Meter) -> Receiver:
    """Connect a device that is ready to receive."""
    match job:
        case MqttDevice():
            client = mqtt.Receiver("device" + job.topic, meter.take)
            await client.dial(job.port)
            await client.open()
            await client.subscribe(job.topic, qos=job.qos)
            return Linked(client)
        case AmqpDevice(library=False):
            receiver = amqp.Receiver(meter.take)
            await receiver.dial(job.port)
            await receiver.open()
            await receiver.declare(job.queue, kind=job.kind)
            await receiver.consume(job.queue, prefetch=job.prefetch)
            return Linked(receiver)
        case AmqpDevice():
            from bench.hop import library  # noqa: PLC0415 - who does not compare has no pika

            by_library = library.Receiver(meter.take)
            await by_library.dial(job.port)
            await by_library.consume(job.queue, kind=job.kind, prefetch=job.prefetch)
            return Linked(by_library)
        case HopDevice():
            device = SdkDevice(job, meter)
            await device.open()
            return device
