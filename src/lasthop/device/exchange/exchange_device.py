"""The interface of a device as exchanges use it; exchanges need nothing else of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, Protocol

from lasthop.clock import Micros
from lasthop.device.compose import Draft
from lasthop.device.handle import MessageHandle
from lasthop.device.message import Message


class ExchangeDevice(Protocol):
    """The device that sends and receives messages for exchanges; `client.Device` is one."""

    def now(self) -> Micros:
        """Return the current time of the device's clock, in microseconds."""
        ...

    def background(self, work: Awaitable[None]) -> None:
        """Run an awaitable until it ends or the device is closed."""
        ...

    async def post(self, draft: Draft) -> MessageHandle:
        """Queue a draft made by `compose`; return its handle when it is durable."""
        ...

    async def ask(self, draft: Draft) -> tuple[MessageHandle, asyncio.Future[Any]]:
        """Queue a request; the future gets the request's one outcome."""
        ...

    def messages(self, *, automatic: bool = True) -> AsyncGenerator[Message, None]:
        """Yield messages in order; if `automatic` is False, only `finish` ends a message."""
        ...

    def finish(self, message: Message) -> None:
        """Say that the application is done with a message."""
        ...

    def lapse(self, message: Message) -> None:
        """Say that the deadline of a message passed before the application looked at it."""
        ...
