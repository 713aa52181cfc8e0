"""Received messages as handlers and callers of an exchange get them: a value, and the way to
answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeAlias, TypeVar

from lasthop.device.handle import MessageHandle
from lasthop.device.message import Message
from lasthop.wire.hop.services import OPERATION_HEADER

T = TypeVar("T")

CALLBACK_HEADER = "lasthop-callback"
"""The header with the name of the receiver's callback that a message is for."""

SENDER_HEADER = "lasthop-sender"
"""The header with the name of the sender's callback that takes messages at any later time."""


class ReplySender(Protocol[T]):
    """The object that sends answers to received messages: an `Exchange`."""

    async def reply(self, to: Received[T], value: T) -> MessageHandle:
        """Answer a received message with a value."""
        ...

    async def ask_back(
        self,
        to: Received[T],
        value: T,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Received[T]:
        """Answer a received message with a question, and return the answer to the question."""
        ...


class Received(Generic[T]):
    """A received message, or the outcome of a request. `value` raises the error that stands for a
    missing value: TimeoutError, MessageRefused or Declined."""

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
        """The message as the device got it; None if nothing came."""
        self.error = error
        """The error that explains why there is no value; None if there is a value."""

    @property
    def value(self) -> T:
        """The decoded payload; raises `error` if there is one."""
        if self.error is not None:
            raise self.error
        return self._value  # type: ignore[return-value]

    @property
    def source(self) -> str | None:
        """The sending device as `device:NAME`; None if the message came from a publisher."""
        return None if self.message is None else self.message.source

    @property
    def sender(self) -> str | None:
        """The address `device:NAME#CALLBACK` to which one may send at any later time; None if the
        sender gave none."""
        if self.message is None or self.message.source is None:
            return None
        name = self.message.extra.get(SENDER_HEADER)
        return f"{self.message.source}#{name}" if name else None

    @property
    def operation(self) -> str:
        """The operation that the message asks for; empty if it names none."""
        return "" if self.message is None else self.message.extra.get(OPERATION_HEADER, "")

    @property
    def topic(self) -> str | None:
        """The topic that the message was published to; None if it was not published to a topic."""
        return None if self.message is None else self.message.topic

    @property
    def wants_reply(self) -> bool:
        """Whether the sender of the message waits for an answer."""
        return self.message is not None and self.message.wants_reply

    @property
    def redelivered(self) -> bool:
        """Whether the application may have seen the message before a crash."""
        return self.message is not None and self.message.redelivered

    async def reply(self, value: T) -> MessageHandle:
        """Answer the message with a value. Raises Expired if its sender no longer waits."""
        return await self._exchange.reply(self, value)

    async def ask(self, value: T, *, timeout: float | None = None) -> Received[T]:  # noqa: ASYNC109
        """Answer the message with a question, and return the answer to the question. Raises Expired
        if the message's sender no longer waits, and TimeoutError, MessageRefused or Declined if the
        question gets no answer."""
        return await self._exchange.ask_back(self, value, timeout=timeout)


class Asking(Generic[T]):
    """A question that a handler returns as its answer; `then` is called with the outcome of the
    question."""

    __slots__ = ("then", "timeout", "value")

    def __init__(
        self,
        value: T,
        then: Handler[T] | str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Make an answer that is a question; `then` is a function, which is lost with the process,
        or the name of a registered callback. `timeout` is in seconds."""
        self.value = value
        self.then = then
        self.timeout = timeout


Result: TypeAlias = T | Asking[T] | None
"""What a handler may return: the answer, a question, or None for no answer."""

Handler: TypeAlias = Callable[[Received[T]], Result[T] | Awaitable[Result[T]]]
