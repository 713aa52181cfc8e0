"""Links over WebSocket: each unit is one binary message.

The WebSocket library below is reached through two coroutine functions, one to send and one to
close. They are called from a task that exists only while there is something to send, so that an
idle link has none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from lasthop.errors import MalformedFrame
from lasthop.transport.link import ChannelLink, Ends, Machine
from lasthop.transport.stream import HIGH_WATER

SUBPROTOCOL = "hop"
"""The WebSocket subprotocol. It is optional: the path is enough, but browsers that ask for it
insist on an answer."""


class WebSocketLink(ChannelLink):
    """A link over an established WebSocket."""

    __slots__ = (
        "_cut",
        "_ending",
        "_full",
        "_hang_up",
        "_send",
        "_sender",
        "_unsent",
        "_waiting",
        "reader",
    )

    def __init__(
        self,
        ends: Ends,
        machine: Machine,
        *,
        send: Callable[[bytes], Awaitable[None]],
        hang_up: Callable[[], Awaitable[None]],
        cut: Callable[[], object],
        local: bool = False,
    ) -> None:
        super().__init__(ends, machine, local=local)
        self._send = send
        self._hang_up = hang_up
        self._cut = cut
        self._sender: asyncio.Task[None] | None = None
        self._waiting: deque[bytes] | None = None
        self._unsent = 0
        self._full = False
        self._ending = False
        self.reader: asyncio.Task[None] | None = None
        """The task that reads messages, on the device's side; the reference keeps the task
        alive."""

    def message(self, data: bytes | str | None) -> None:
        """Handle a received message; fail the link if the message is not binary."""
        if isinstance(data, bytes):
            self.arrived(data)
        else:
            self.fail(MalformedFrame("the hop protocol speaks in binary messages"))

    def write(self, units: list[bytes]) -> None:
        if self._waiting is None:
            self._waiting = deque()
        self._waiting += units
        self._unsent += sum(map(len, units))
        self._start()
        if self._unsent >= HIGH_WATER and not self._full:
            self._full = True
            self.full(True)

    @property
    def unsent(self) -> int:
        return self._unsent

    def hang_up(self) -> None:
        self._ending = True
        self._start()

    def cut(self) -> None:
        if self._sender is not None:
            self._sender.cancel()
        self.ended("the peer did not read the last frames in time")
        self._cut()

    def _start(self) -> None:
        if self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                unit = self._waiting.popleft()
                await self._send(unit)
                self._unsent -= len(unit)
                if self._full and self._unsent < HIGH_WATER // 4:
                    self._full = False
                    self.full(False)
                self.look_drained()
            if self._ending:
                await self._hang_up()
        except (OSError, RuntimeError) as error:
            # ASGI servers report with a RuntimeError that the connection ended first.
            self.ended(str(error) or type(error).__name__)
        finally:
            self._sender = None
            if not self._waiting:
                self._waiting = None
