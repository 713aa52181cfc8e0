"""The publishing side of every system, with one interface."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from bench.hop import amqp, http, mqtt
from bench.hop.jobs import AmqpPublisher, HttpPublisher, MqttPublisher, PublisherJob
from bench.hop.window import Window


class Publisher(Protocol):
    """Sends payloads to the one device of its system."""

    async def prepare(self, payloads: Sequence[bytes]) -> None:
        """Prepare everything that need not be part of the measurement."""
        ...

    async def blast(self) -> None:
        """Send the prepared messages as fast as they are accepted; return when all are
        confirmed."""
        ...

    def send(self, payload: bytes) -> None:
        """Send one message now."""
        ...

    async def settled(self) -> None:
        """Wait until all sent messages are confirmed."""
        ...


class Windowed:
    """A publisher of MQTT or AMQP: one connection, a window of unconfirmed messages."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._payloads: Sequence[bytes] = ()

    async def prepare(self, payloads: Sequence[bytes]) -> None:
        self._payloads = payloads

    async def blast(self) -> None:
        await self._window.send_all(self._payloads)

    def send(self, payload: bytes) -> None:
        self._window.send(payload)

    async def settled(self) -> None:
        await self._window.settled()


class Posting:
    """A publisher to lasthop: batches of NDJSON when there is much to send, single POSTs
    otherwise."""

    def __init__(self, job: HttpPublisher) -> None:
        self._job = job
        self._lines = http.Pool(
            http.request_head(job.path, content_type="application/x-ndjson"), size=job.connections
        )
        self._single = http.Pool(
            http.request_head(job.path, content_type="application/json"),
            size=job.single_connections,
        )
        self._bodies: list[bytes] = []
        self._answers: set[asyncio.Future[None]] = set()

    async def dial(self) -> None:
        """Open the connections that are not open."""
        await self._lines.fill(self._job.port)
        await self._single.fill(self._job.port)

    async def prepare(self, payloads: Sequence[bytes]) -> None:
        await self.dial()
        lines = [self._line(payload) for payload in payloads]
        size = self._job.batch
        self._bodies = [
            b"\n".join(lines[start : start + size]) for start in range(0, len(lines), size)
        ]

    async def blast(self) -> None:
        pool = self._lines if self._job.batch > 1 else self._single
        await pool.post_all(self._bodies)

    def send(self, payload: bytes) -> None:
        answer = self._single.post(self._line(payload))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    async def settled(self) -> None:
        if self._answers:
            await asyncio.gather(*self._answers)

    def _line(self, payload: bytes) -> bytes:
        return msgspec.json.encode({"device": self._job.device, "body": payload.decode()})


async def connect(job: PublisherJob) -> Publisher:
    """Connect a publisher that is ready to send."""
    match job:
        case MqttPublisher():
            client = mqtt.Sender(
                "publisher" + job.topic, topic=job.topic, qos=job.qos, window=job.window
            )
            await client.dial(job.port)
            await client.open()
            return Windowed(client.window)
        case AmqpPublisher(library=False):
            sender = amqp.Sender(job.queue, window=job.window)
            await sender.dial(job.port)
            await sender.open()
            await sender.ask_for_confirms()
            return Windowed(sender.window)
        case AmqpPublisher():
            from bench.hop import library  # noqa: PLC0415 - who does not compare has no pika

            by_library = library.Sender(job.queue, window=job.window)
            await by_library.dial(job.port)
            await by_library.ask_for_confirms()
            return Windowed(by_library.window)
        case HttpPublisher():
            posting = Posting(job)
            await posting.dial()
            return posting
