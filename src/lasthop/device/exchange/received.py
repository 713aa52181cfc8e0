"""What came in, as handlers and callers of an exchange get it: a value, and the way back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeAlias, TypeVar

from lasthop.device.handle import MessageHandle
from lasthop.device.message import Message
from lasthop.wire.hop.services import OPERATION_HEADER

T = TypeVar("T")

CALLBACK_HEADER = "lasthop-callback"
"""The name of the receiver's callback that a message is for."""

SENDER_HEADER = "lasthop-sender"
"""The name of the sender's callback that takes messages at any later time."""


class ReplySender(Protocol[T]):
    """Whoever sends the answers to what was received; an `Exchange` does."""

    async def reply(self, to: Received[T], value: T) -> MessageHandle:
        """Answer a message."""
        ...

    async def ask_back(
        self,
        to: Received[T],
        value: T,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Received[T]:
        """Answer with a question, and wait for what is answered to that."""
        ...


class Received(Generic[T]):
    """A message, or the outcome of a request. `value` raises what stands in its place: a
    TimeoutError, a MessageRefused, a Declined."""

    __slots__ = ("_exchange", "_value", "error", "message")

    def __init__(
        self,
        exchange: ReplySender[T],
        message: Message | None,
        value: T | None = None,
        error: Exception | None = None,
    ) -> None:
        self._exchange = exchange
        self._value = value
        self.message = message
        """As the device got it; None when nothing came."""
        self.error = error
        """Why there is no value."""

    @property
    def value(self) -> T:
        """The payload."""
        if self.error is not None:
            raise self.error
        return self._value  # type: ignore[return-value]

    @property
    def source(self) -> str | None:
        """The device that sent it: `device:NAME`; None when it came from a publisher."""
        return None if self.message is None else self.message.source

    @property
    def sender(self) -> str | None:
        """Where the sender takes messages at any later time, if it said so."""
        if self.message is None or self.message.source is None:
            return None
        name = self.message.extra.get(SENDER_HEADER)
        return f"{self.message.source}#{name}" if name else None

    @property
    def operation(self) -> str:
        """What is asked for."""
        return "" if self.message is None else self.message.extra.get(OPERATION_HEADER, "")

    @property
    def topic(self) -> str | None:
        """The topic it was published to."""
        return None if self.message is None else self.message.topic

    @property
    def wants_reply(self) -> bool:
        """Whether somebody waits for an answer."""
        return self.message is not None and self.message.wants_reply

    @property
    def redelivered(self) -> bool:
        """The application may have seen it before, in mid-call of a crash."""
        return self.message is not None and self.message.redelivered

    async def reply(self, value: T) -> MessageHandle:
        """Answer."""
        return await self._exchange.reply(self, value)

    async def ask(self, value: T, *, timeout: float | None = None) -> Received[T]:  # noqa: ASYNC109
        """Answer with a question, and wait for what is answered to that."""
        return await self._exchange.ask_back(self, value, timeout=timeout)


class Asking(Generic[T]):
    """Returned by a handler: the answer is a question in its turn, and `then` gets its outcome."""

    __slots__ = ("then", "timeout", "value")

    def __init__(
        self,
        value: T,
        then: Handler[T] | str,
        *,
        timeout: float | None = None,
    ) -> None:
        """`then` is a function, which is gone with the process, or the name of a registered
        callback."""
        self.value = value
        self.then = then
        self.timeout = timeout


Result: TypeAlias = T | Asking[T] | None
"""What a handler may return: the answer, a question, or nothing."""

Handler: TypeAlias = Callable[[Received[T]], Result[T] | Awaitable[Result[T]]]
