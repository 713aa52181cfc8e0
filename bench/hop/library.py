"""Clients of RabbitMQ with pika, the library that programs in Python use.

`bench.hop.amqp` shows what the broker can do for a client that is made for this benchmark; this
module shows what an application gets, as the SDK does for lasthop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pika import BasicProperties, ConnectionParameters, DeliveryMode
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.channel import Channel
from pika.frame import Method
from pika.spec import Basic

from bench.hop.amqp import Confirms, Refused
from bench.hop.link import Guard
from bench.hop.window import Window

PERSISTENT = BasicProperties(delivery_mode=DeliveryMode.Persistent.value)


class Client(Guard):
    """A connection with one channel."""

    async def dial(self, port: int) -> None:
        """Log in as the guest user, which RabbitMQ admits over loopback, and open a channel."""
        opened: asyncio.Future[Channel] = self._loop.create_future()
        self._connection = AsyncioConnection(
            # No heartbeat: a run is short, and only messages should be on the wire.
            ConnectionParameters("127.0.0.1", port, heartbeat=0),
            on_open_callback=lambda made: made.channel(on_open_callback=opened.set_result),
            on_open_error_callback=lambda _, error: self.end(str(error)),
            on_close_callback=lambda _, error: self.end(str(error)),
            custom_ioloop=self._loop,
        )
        self.channel = await self.guard(opened)
        self.channel.add_on_close_callback(lambda _, error: self.end(str(error)))

    def hang_up(self) -> None:
        if self._connection.is_open:
            self._connection.close()


class Receiver(Client):
    """A device, which acknowledges together all messages that arrive in one turn of the loop."""

    def __init__(self, take: Callable[[list[bytes]], None]) -> None:
        super().__init__()
        self._take = take
        self._taken: list[bytes] = []
        self._last = 0

    async def consume(self, queue: str, *, kind: str, prefetch: int) -> None:
        """Declare the queue, and start receiving from it."""
        declared: asyncio.Future[object] = self._loop.create_future()
        self.channel.queue_declare(
            queue, durable=True, arguments={"x-queue-type": kind}, callback=declared.set_result
        )
        await self.guard(declared)
        self.channel.basic_qos(prefetch_count=prefetch)
        consuming: asyncio.Future[object] = self._loop.create_future()
        self.channel.basic_consume(queue, self._came, callback=consuming.set_result)
        await self.guard(consuming)

    def _came(self, _: Channel, method: Basic.Deliver, __: BasicProperties, body: bytes) -> None:
        if not self._taken:
            self._loop.call_soon(self._acknowledge)
        self._taken.append(body)
        self._last = method.delivery_tag

    def _acknowledge(self) -> None:
        taken, self._taken = self._taken, []
        self.channel.basic_ack(self._last, multiple=True)
        self._take(taken)


class Sender(Client):
    """A publisher with confirms and a window of unconfirmed messages."""

    def __init__(self, queue: str, *, window: int) -> None:
        super().__init__()
        self.window = Window(self, size=window, put=self._put)
        self._queue = queue
        self._confirms = Confirms()

    async def ask_for_confirms(self) -> None:
        """Ask the broker to confirm messages that it has accepted."""
        selected: asyncio.Future[object] = self._loop.create_future()
        self.channel.confirm_delivery(self._confirmed, callback=selected.set_result)
        await self.guard(selected)

    def _confirmed(self, frame: Method) -> None:
        if not isinstance(frame.method, Basic.Ack):
            raise Refused("the broker refused a message")
        self._confirms.add(frame.method.delivery_tag, multiple=frame.method.multiple)
        if self._confirms.count > self.window.confirmed:
            self.window.confirm(self._confirms.count)

    def _put(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            self.channel.basic_publish("", self._queue, payload, PERSISTENT)
