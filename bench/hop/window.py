"""Pipelined publishing: a window of unconfirmed messages that is kept full.

The same for every protocol, so that no system is measured with a cleverer publisher than another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from bench.hop.link import Guard


class Window:
    """The messages that were sent over a link and are not confirmed yet."""

    def __init__(self, link: Guard, *, size: int, put: Callable[[Sequence[bytes]], None]) -> None:
        """Open a window of `size` messages; `put` passes payloads to the link."""
        self._link = link
        self._size = size
        self._put = put
        self._queue: Sequence[bytes] = ()
        self._next = 0
        self._settled: asyncio.Future[None] | None = None
        self.sent = 0
        self.confirmed = 0

    def send(self, payload: bytes) -> None:
        """Publish one message now, whether there is room or not."""
        self._put((payload,))
        self.sent += 1

    async def send_all(self, payloads: Sequence[bytes]) -> None:
        """Publish payloads, keeping the window full; return when all are confirmed."""
        self._queue, self._next = payloads, 0
        self._fill()
        await self.settled()

    async def settled(self) -> None:
        """Wait until every message, sent or waiting, is confirmed."""
        while self.confirmed < self.sent or self._next < len(self._queue):
            self._settled = asyncio.get_running_loop().create_future()
            await self._link.guard(self._settled)

    def confirm(self, count: int) -> None:
        """Note that the first `count` of all messages are confirmed."""
        self.confirmed = count
        if self._next < len(self._queue):
            self._fill()
        elif count >= self.sent and self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    def _fill(self) -> None:
        room = self._size - (self.sent - self.confirmed)
        chunk = self._queue[self._next : self._next + max(room, 0)]
        if chunk:
            self._next += len(chunk)
            self.sent += len(chunk)
            self._put(chunk)
