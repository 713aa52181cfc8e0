"""The process that counts bytes: `python -m bench.hop.relay JOB`.

It forwards what a device and its broker send, and counts the bytes. TCP and IP headers are not
counted: their number depends on how the kernel happened to cut the stream.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import msgspec

from bench.hop.conversation import Conversation, run
from bench.hop.jobs import Count, Counted, Listening, Relay


class Counter:
    """Bytes that were forwarded, by direction."""

    def __init__(self) -> None:
        self.to_device = 0
        self.from_device = 0


class Upstream(asyncio.Protocol):
    """The connection to the broker."""

    def __init__(self, device: asyncio.Transport, counter: Counter) -> None:
        self._device = device
        self._counter = counter

    def data_received(self, data: bytes) -> None:
        self._counter.to_device += len(data)
        self._device.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._device.close()


class Downstream(asyncio.Protocol):
    """The connection to the device."""

    def __init__(self, port: int, counter: Counter) -> None:
        self._port = port
        self._counter = counter
        self._early: list[bytes] = []
        self._broker: asyncio.WriteTransport | None = None
        self._dialing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        device = cast("asyncio.Transport", transport)
        self._dialing = asyncio.get_running_loop().create_task(self._dial(device))

    async def _dial(self, device: asyncio.Transport) -> None:
        self._broker, _ = await asyncio.get_running_loop().create_connection(
            lambda: Upstream(device, self._counter), "127.0.0.1", self._port
        )
        self._broker.write(b"".join(self._early))

    def data_received(self, data: bytes) -> None:
        self._counter.from_device += len(data)
        if self._broker is None:
            self._early.append(data)
        else:
            self._broker.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._broker is not None:
            self._broker.close()


async def main(parent: Conversation) -> None:
    """Forward bytes, and report the count until no more orders come."""
    job = msgspec.json.decode(sys.argv[1], type=Relay)
    counter = Counter()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Downstream(job.port, counter), "127.0.0.1", 0)
    parent.say(Listening(port=server.sockets[0].getsockname()[1]))
    while await parent.hear(Count) is not None:
        parent.say(Counted(to_device=counter.to_device, from_device=counter.from_device))
    server.close()


if __name__ == "__main__":
    run(main)
