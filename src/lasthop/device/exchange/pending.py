"""Answers that an exchange waits for: from one receiver, or from many."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from lasthop.device.exchange.received import Received
from lasthop.device.handle import MessageHandle
from lasthop.errors import Rejected

T = TypeVar("T")


class Pending(Generic[T]):
    """The answer to a request that has been sent, for later: await its `value`."""

    __slots__ = ("future", "handle")

    def __init__(self, handle: MessageHandle, future: asyncio.Future[Received[T]]) -> None:
        self.handle = handle
        """The handle of the request's message."""
        self.future = future
        """The future of the answer, or of the error that stands for it."""

    def done(self) -> bool:
        """Whether the answer has come, or cannot come any more."""
        return self.future.done()

    async def received(self) -> Received[T]:
        """Wait for the answer and return it with its message. An error is in the `error` of the
        result, and its `value` raises that error."""
        return await asyncio.shield(self.future)

    async def value(self) -> T:
        """Wait for the answer and return its value. Raises TimeoutError, MessageRefused or
        Declined."""
        return (await self.received()).value

    def cancel(self) -> None:
        """Stop waiting for the answer; if it comes it is dropped."""
        self.future.cancel()


class Replies(Generic[T]):
    """The answers of many devices to one request."""

    __slots__ = ("complete", "declined", "missing", "values")

    def __init__(
        self,
        values: dict[str, T],
        declined: dict[str, Rejected],
        missing: tuple[str, ...] | None,
        complete: bool,
    ) -> None:
        self.values = values
        """The values that were answered, by device name, in the order in which they came."""
        self.declined = declined
        """The errors of devices that declined, or whose answer could not be decoded, by device
        name."""
        self.missing = missing
        """The devices that were asked and have not answered; None if the gateway has not said which
        devices were asked."""
        self.complete = complete
        """Whether enough answers came before the deadline."""
