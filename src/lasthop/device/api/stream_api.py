"""Opening and reading streams, and fetching bodies that were left at the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Unpack

from lasthop.device import compose
from lasthop.device.api.device_api import DeviceApi
from lasthop.device.compose import Options
from lasthop.device.message import Message
from lasthop.device.streams import IncomingStream, OutgoingStream


class StreamApi(DeviceApi):
    """Methods of `Device` that open and read streams and fetch bodies."""

    async def open_stream(self, target: str, **options: Unpack[Options]) -> OutgoingStream:
        """Open a stream to `device:NAME`, or to `publisher:`, where it is fetched over REST.
        Returns when the stream is durable on this device. Raises InvalidRequest for another target,
        or for options that only a message can have (`expires_in`, `reliability`, `rank`,
        `delay_tolerance`)."""
        headers = compose.stream(target, **options).headers
        key: int = await self.do(lambda session, now: session.pieces.open_stream(now, headers))
        return OutgoingStream(self, key)

    async def outgoing_streams(self) -> list[OutgoingStream]:
        """Return the streams that this device sends and has not ended; after a crash, continue to
        write each of them at its `position`."""
        found = await self.do(lambda session, _now: session.pieces.outgoing.states())
        return [
            OutgoingStream(self, key, state.position)
            for key, state in found
            if state.size < 0 and not state.failed
        ]

    def stream(self, message: Message | int) -> IncomingStream:
        """Return the stream that a message has opened, given the message or its key."""
        return IncomingStream(self, message if isinstance(message, int) else message.key)

    async def incoming_streams(self) -> list[IncomingStream]:
        """Return the streams that the application has not read to the end."""
        keys = await self.do(lambda session, _now: session.pieces.incoming.open_keys())
        return [IncomingStream(self, key) for key in keys]

    def on_stream(self, reader: Callable[[IncomingStream], Awaitable[None]]) -> None:
        """Call a coroutine function for every incoming stream, each in a separate task, to read the
        stream. Streams that were not read to the end before a restart are included. An exception of
        the reader ends the device."""
        self.opened()
        started: set[int] = set()

        async def read(key: int) -> None:
            if key in await self.do(lambda session, _now: session.pieces.incoming.open_keys()):
                await reader(self.stream(key))

        def begin(key: int) -> None:
            if key not in started:
                started.add(key)
                self.background(read(key))

        async def begin_all() -> None:
            for stream in await self.incoming_streams():
                begin(stream.key)

        self.handles.on_stream = begin
        self.background(begin_all())

    async def fetch(self, message: Message) -> bytes:
        """Return the body of a message, fetching it now if it was left at the gateway. Call this
        before the message is done. Raises Conflict if the body is no longer available."""
        if message.pull_size is None:
            return message.body
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        # Registered before the turn, in which the body may arrive.
        self.handles.pulling(message.key, answer)
        body: bytes | None = await self.do(
            lambda session, now: session.pieces.pull(message.key, now)
        )
        return body if body is not None else await answer
