"""A device as exchanges see it: they need these of its methods, and nothing else of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, Protocol

from lasthop.clock import Micros
from lasthop.device.compose import Draft
from lasthop.device.handle import MessageHandle
from lasthop.device.message import Message


class ExchangeDevice(Protocol):
    """Whoever sends and takes messages for exchanges; `client.Device` does."""

    def now(self) -> Micros:
        """The time by the device's clock."""
        ...

    def background(self, work: Awaitable[None]) -> None:
        """Run something for as long as the device lives."""
        ...

    async def post(self, draft: Draft) -> MessageHandle:
        """Send what `compose` has made."""
        ...

    async def ask(self, draft: Draft) -> tuple[MessageHandle, asyncio.Future[Any]]:
        """Send a request; the future gets its one outcome."""
        ...

    def messages(self, *, automatic: bool = True) -> AsyncGenerator[Message, None]:
        """Messages in order; without `automatic` only `finish` ends one."""
        ...

    def finish(self, message: Message) -> None:
        """The application is done with a message."""
        ...

    def lapse(self, message: Message) -> None:
        """The application had not looked at a message when its deadline passed."""
        ...
