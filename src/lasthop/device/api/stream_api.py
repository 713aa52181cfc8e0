"""Streams, and bodies that are pulled."""

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
    """Opens and reads streams."""

    async def open_stream(self, target: str, **options: Unpack[Options]) -> OutgoingStream:
        """Open a stream to `device:NAME`, or to `publisher:`, where it is fetched over REST.
        Returns when that is durable here."""
        headers = compose.stream(target, **options).headers
        key: int = await self.do(lambda session, now: session.pieces.open_stream(now, headers))
        return OutgoingStream(self, key)

    async def outgoing_streams(self) -> list[OutgoingStream]:
        """Streams of ours that the gateway may not have to the end; after a crash they go on where
        they are (`position`)."""
        found = await self.do(lambda session, _now: session.pieces.outgoing.states())
        return [
            OutgoingStream(self, key, state.position)
            for key, state in found
            if state.size < 0 and not state.failed
        ]

    def stream(self, message: Message | int) -> IncomingStream:
        """The stream that a message has opened, by the message or its key."""
        return IncomingStream(self, message if isinstance(message, int) else message.key)

    async def incoming_streams(self) -> list[IncomingStream]:
        """Streams that the application has not had to the end."""
        keys = await self.do(lambda session, _now: session.pieces.incoming.open_keys())
        return [IncomingStream(self, key) for key in keys]

    def on_stream(self, reader: Callable[[IncomingStream], Awaitable[None]]) -> None:
        """Let this coroutine function read every stream that comes in, each in a task of its own;
        also those that an earlier life has not had to the end."""
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

        self.codec.on_stream = begin
        self.background(begin_all())

    async def fetch(self, message: Message) -> bytes:
        """The body of a message; if it was left with the gateway, it is pulled now. Ask before the
        message is done. Raises Conflict when it is not to be had any more."""
        if message.pull_size is None:
            return message.body
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.codec.pulling(message.key, answer)
        body: bytes | None = await self.do(
            lambda session, now: session.pieces.pull(message.key, now)
        )
        return body if body is not None else await answer
