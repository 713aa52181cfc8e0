"""Answers to come: one, and those of many."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from lasthop.device.exchange.received import Received
from lasthop.device.handle import MessageHandle
from lasthop.errors import Rejected

T = TypeVar("T")


class Pending(Generic[T]):
    """An answer to come."""

    __slots__ = ("future", "handle")

    def __init__(self, handle: MessageHandle, future: asyncio.Future[Received[T]]) -> None:
        self.handle = handle
        """Of the request."""
        self.future = future
        """Of the answer, or of what came in its place."""

    def done(self) -> bool:
        """Whether it has come, or will not."""
        return self.future.done()

    async def received(self) -> Received[T]:
        """The answer with all that came along, or what came in its place."""
        return await asyncio.shield(self.future)

    async def value(self) -> T:
        """The answer. Raises TimeoutError, MessageRefused or Declined."""
        return (await self.received()).value

    def cancel(self) -> None:
        """Wait no longer; whatever comes is let go."""
        self.future.cancel()


class Replies(Generic[T]):
    """What many have answered."""

    __slots__ = ("complete", "declined", "missing", "values")

    def __init__(
        self,
        values: dict[str, T],
        declined: dict[str, Rejected],
        missing: tuple[str, ...] | None,
        complete: bool,
    ) -> None:
        self.values = values
        """By device, in the order in which they came."""
        self.declined = declined
        """Who answered with a reason not to, or with something else than was expected."""
        self.missing = missing
        """Who was asked and has not answered; None: the gateway has not said who was asked."""
        self.complete = complete
        """Whether it ended before the deadline."""
