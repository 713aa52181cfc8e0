"""Streams as the application sees them: outgoing streams, which it writes, and incoming streams,
which it reads.

    async with await device.open_stream("device:tablet") as stream:
        await stream.write(chunk)

    async for chunk in device.stream(message):
        ...

Both go on after a break of the link, and after a crash where the device's inbox is a file:
positions are durable, and `position` says where to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from lasthop.device.handle_table import HandleTable
from lasthop.device.session import DeviceSession
from lasthop.errors import Conflict, NotFound

CHUNK = 256 << 10
"""The largest number of bytes that the application gets or writes at a time: each chunk costs a
commit."""


class StreamDevice(Protocol):
    """The methods of a device that its streams use."""

    @property
    def handles(self) -> HandleTable: ...

    def do(self, act: Callable[[DeviceSession, int], Any]) -> Awaitable[Any]:
        """Run `act` with the session, and return its result when its changes are durable."""
        ...


class _Stirred:
    """An event that is set whenever a stream changes, for the time of a `with` block."""

    def __init__(self, device: StreamDevice, key: int) -> None:
        self._device = device
        self._key = key
        self._event = asyncio.Event()

    def __enter__(self) -> asyncio.Event:
        self._device.handles.watch_stream(self._key, self._event)
        return self._event

    def __exit__(self, *_: object) -> None:
        self._device.handles.unwatch_stream(self._key, self._event)


class OutgoingStream:
    """A stream that this device sends: `async with` ends it, or aborts it after an exception."""

    def __init__(self, device: StreamDevice, key: int, position: int = 0) -> None:
        self._device = device
        self.key = key
        self.position = position
        """The number of bytes that are durable on this device; after a crash, the offset to go on
        at."""

    @property
    def id(self) -> str:
        """The stream's key in sixteen hexadecimal digits; the gateway gives the stream an id of its
        own."""
        return f"{self.key:016x}"

    async def write(self, data: bytes) -> None:
        """Append data to the stream; return when it is durable on this device. Waits while the
        receiver is behind by a window. Raises Conflict if the stream is over, or the receiver
        stopped it."""
        view = memoryview(data)
        with _Stirred(self._device, self.key) as stirred:
            while view:
                stirred.clear()
                taken: int = await self._ask(partial(_write, self.key, bytes(view[:CHUNK])))
                self.position += taken
                view = view[taken:]
                if not taken:
                    await stirred.wait()

    async def end(self) -> None:
        """End the stream after all that was written; return when the end is durable on this
        device."""
        await self._ask(lambda session, _now: session.pieces.outgoing.end(self.key))

    async def abort(self, reason: str = "the application aborted the stream") -> None:
        """Break the stream off, and tell the receiver why."""
        await self._ask(lambda session, _now: session.pieces.outgoing.abort(self.key, reason))

    async def closed(self) -> None:
        """Wait until the gateway has the whole stream and its end."""
        with _Stirred(self._device, self.key) as stirred:
            while True:
                stirred.clear()
                if not await self._ask(lambda s, _now: self.key in s.pieces.outgoing):
                    return
                await stirred.wait()

    async def _ask(self, act: Callable[[DeviceSession, int], Any]) -> Any:
        try:
            return await self._device.do(act)
        except NotFound:
            raise Conflict("the stream is over", id=self.id) from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.end()
        elif isinstance(error, Exception) and not isinstance(error, Conflict):
            # After Conflict the stream is over; after a cancellation it stays open, to go on later.
            await self.abort(repr(error))


class IncomingStream:
    """A stream that this device receives: iterate over its chunks. A chunk is done when the next
    one is asked for; after a crash the stream goes on with the first chunk that was not done."""

    def __init__(self, device: StreamDevice, key: int) -> None:
        self._device = device
        self.key = key
        self.position = 0
        """The offset of the chunk that was last returned, or of the first to come."""
        self._next: int | None = None

    @property
    def id(self) -> str:
        """The short form of the id of the message that opened the stream."""
        return f"{self.key:016x}"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self.read()) is not None:
            yield chunk

    async def read(self, most: int = CHUNK) -> bytes | None:
        """Return the next bytes, at most `most`; None at the end of the stream. Raises Conflict if
        the sender aborted the stream."""
        with _Stirred(self._device, self.key) as stirred:
            while True:
                stirred.clear()
                if self._next is None:
                    self._next = await self._device.do(partial(_position, self.key))
                position = self._next
                chunk: bytes | None = await self._device.do(
                    partial(_advance, self.key, position, most)
                )
                if chunk is not None:
                    self.position = position
                    self._next = position + len(chunk)
                    return chunk or None
                await stirred.wait()

    async def stop(self, reason: str = "the application wants no more") -> None:
        """Receive no more of the stream, and tell the sender why."""
        await self._device.do(lambda session, _now: session.pieces.incoming.stop(self.key, reason))


def _write(key: int, body: bytes, session: DeviceSession, _now: int) -> int:
    return session.pieces.outgoing.write(key, body)


def _position(key: int, session: DeviceSession, _now: int) -> int:
    return session.pieces.incoming.position(key)


def _advance(key: int, position: int, most: int, session: DeviceSession, _now: int) -> bytes | None:
    return session.pieces.incoming.advance(key, position, most)
