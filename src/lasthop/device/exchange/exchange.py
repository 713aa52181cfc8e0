"""Sending, calling and answering with values of one type, over any payload.

    orders = Exchange(device, Json(Order))
    price = await orders.call("service:pricing", order, operation="price", timeout=5)

A request is durable on the device before it leaves. Answers are handed over in the order of the
requests to the same target; a missing answer delays the others until its deadline at most.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar, Unpack

from lasthop.clock import SECOND
from lasthop.device.compose import Draft
from lasthop.device.exchange.binding import Binding
from lasthop.device.exchange.declining import Declined
from lasthop.device.exchange.exchange_device import ExchangeDevice
from lasthop.device.exchange.message_codec import MessageCodec, SendOptions
from lasthop.device.exchange.pending import Pending, Replies
from lasthop.device.exchange.received import (
    Asking,
    Handler,
    Received,
    Result,
)
from lasthop.device.exchange.switchboard import ExchangeSwitchboard, Taker
from lasthop.device.handle import MessageHandle, MessageRefused
from lasthop.device.message import Message
from lasthop.device.requests.expectation import Expectation
from lasthop.device.runner import HandlerFailed
from lasthop.device.session_events import Gathered
from lasthop.errors import Expired, Rejected
from lasthop.wire.hop.services import Service

log = logging.getLogger("lasthop.device")

T = TypeVar("T")


class ServingDevice(ExchangeDevice, Protocol):
    """The methods of a device that can be reached by name; one switchboard serves all its
    exchanges."""

    switchboard: ExchangeSwitchboard | None

    async def offer(self, service: Service) -> MessageHandle:
        """Offer a service of this device, so that others find it."""
        ...

    async def subscribe(self, topic: str) -> MessageHandle:
        """Subscribe to a topic, or to the topics of a pattern."""
        ...

    async def unsubscribe(self, topic: str) -> MessageHandle:
        """End the device's subscription to a topic."""
        ...


class Exchange(Generic[T]):
    """Sends values of one type from a device, and hands incoming ones to handlers."""

    def __init__(
        self,
        device: ServingDevice,
        binding: Binding[T],
        *,
        timeout: float = 30.0,
        ordered: bool = True,
    ) -> None:
        """Set up an exchange of a device, without sending anything.

        - `binding`: encodes and decodes the values (`Json(Order)`, `Text()`, `Bytes()`, `Xml()`).
        - `timeout`: seconds that requests wait for an answer if they name no time of their own.
        - `ordered`: hand answers over in the order of the requests to the same target; if False, as
          they come.
        """
        self._device = device
        self._codec = MessageCodec(binding)
        self._timeout = timeout
        self._ordered = ordered
        self._due: asyncio.Queue[tuple[Handler[T], asyncio.Future[Received[T]]]] = asyncio.Queue()
        self._calling = False

    # Sending.

    async def send(
        self, target: str, value: T, **send_options: Unpack[SendOptions]
    ) -> MessageHandle:
        """Send a value to a target of `Device.send`, or to a callback of a device:
        `device:NAME#CALLBACK`. Returns the handle when the message is durable on this device.
        Raises the errors of `Device.send`."""
        return await self._device.post(self._codec.write(target, value, send_options))

    async def call(
        self,
        target: str,
        value: T,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        **send_options: Unpack[SendOptions],
    ) -> T:
        """Send a request and return the value of its answer. Raises TimeoutError if no answer came
        in time, MessageRefused if the gateway refused the request, or Declined if the receiver
        declined it."""
        return (await self.ask(target, value, timeout=timeout, **send_options)).value

    async def ask(
        self,
        target: str,
        value: T,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        **send_options: Unpack[SendOptions],
    ) -> Received[T]:
        """Send a request like `call`, and return the answer as `Received`. The answer can be
        answered in turn: with its `reply`, or with another question by its `ask`. Raises the errors
        of `call`."""
        pending = await self.begin(target, value, timeout=timeout, **send_options)
        return await self._awaited(pending)

    async def begin(
        self,
        target: str,
        value: T,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        **send_options: Unpack[SendOptions],
    ) -> Pending[T]:
        """Send a request and return its pending answer when the request is durable on this
        device."""
        expects = Expectation(lane=target if self._ordered else "")
        draft = self._codec.write(target, value, send_options, self._within(timeout), expects)
        return await self._begin(draft)

    async def send_callback(
        self,
        target: str,
        value: T,
        callback: Handler[T] | str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        **send_options: Unpack[SendOptions],
    ) -> MessageHandle:
        """Send a request and call `callback` once with its outcome: the answer, or a `Received`
        whose `value` raises the error.

        If `callback` is a function, it is lost when the process ends. If it is the name of a
        registered callback, the name is kept in the device's inbox, and the callback gets the
        outcome even after a restart. Returns when the request is durable on this device.
        """
        within = self._within(timeout)
        lane = target if self._ordered else ""
        if isinstance(callback, str):
            send_options.setdefault("sender", callback)
            expects = Expectation(lane=lane, callback=callback)
            return await self._device.post(
                self._codec.write(target, value, send_options, within, expects)
            )
        draft = self._codec.write(target, value, send_options, within, Expectation(lane=lane))
        return await self._begin_for(draft, callback)

    async def gather(
        self,
        target: str,
        value: T,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        most: int | None = None,
        **send_options: Unpack[SendOptions],
    ) -> Replies[T]:
        """Ask every device of a topic, a user or the app, and collect their answers until all
        devices have answered, `most` devices have answered, or `timeout` seconds have passed."""
        expects = Expectation(gather=True, most=most)
        draft = self._codec.write(target, value, send_options, self._within(timeout), expects)
        gathered: Gathered = await (await self._device.ask(draft))[1]
        values: dict[str, T] = {}
        refused: dict[str, Rejected] = {}
        for name, message in gathered.replies.items():
            received = self.receive(message)
            if isinstance(received.error, Rejected):
                refused[name] = received.error
            else:
                values[name] = received.value
        return Replies(values, refused, gathered.missing, gathered.complete)

    async def notify(
        self, topic: str, value: T, **send_options: Unpack[SendOptions]
    ) -> MessageHandle:
        """Send a value to every device that has subscribed to a topic."""
        return await self.send(f"topic:{topic}", value, **send_options)

    # Receiving.

    def register(self, name: str, callback: Handler[T]) -> None:
        """Register a callback under a name until the process ends. The callback gets the outcomes
        of requests that were sent with its name, even before a restart, and the messages to
        `device:THIS#NAME`. Raises Conflict if the name is taken."""
        self._board.register(name, self._take(callback))

    def deregister(self, name: str) -> None:
        """Remove a callback's name; messages for it wait until it is registered again."""
        self._board.deregister(name)

    def on_message(self, callback: Handler[T]) -> Handler[T]:
        """Call a handler with every message that the binding can decode and that is not for a
        callback, service or topic. The handler's result is the answer, if the sender wants one.
        Usable as a decorator."""
        self._board.take_others(Taker(self._codec.binding.takes, self._take(callback)))
        return callback

    async def serve(self, service: Service, operations: Mapping[str, Handler[T]]) -> MessageHandle:
        """Offer a service at the gateway, and answer its operations with these handlers; the
        operation "" stands for all others. Raises InvalidRequest if the description is invalid."""
        for name, handler in operations.items():
            self._board.serve(service.name, name, self._take(handler))
        return await self._device.offer(service)

    async def subscribe(self, topic: str, callback: Handler[T]) -> MessageHandle:
        """Subscribe to a topic, or to the topics of a pattern, and call a handler with what is
        published."""
        self._board.follow(topic, self._take(callback))
        return await self._device.subscribe(topic)

    async def unsubscribe(self, topic: str) -> MessageHandle:
        """End the subscription to a topic, and remove its handler."""
        self._board.unfollow(topic)
        return await self._device.unsubscribe(topic)

    # Answering; applications usually call the methods of `Received`.

    async def reply(self, to: Received[T], value: T) -> MessageHandle:
        """Answer a received message with a value. Raises Expired if its sender no longer waits."""
        return await self._device.post(self._codec.answer(to.message, value, self._device.now()))

    async def ask_back(
        self,
        to: Received[T],
        value: T,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Received[T]:
        """Answer a received message with a question, and return the answer to the question. Raises
        Expired if the sender no longer waits, and the errors of `call`."""
        now, within = self._device.now(), self._within(timeout)
        draft = self._codec.answer(to.message, value, now, within, Expectation())
        return await self._awaited(await self._begin(draft))

    def receive(self, message: Message) -> Received[T]:
        """Return a message of the device with its decoded value, or with the error that stands for
        it."""
        try:
            return Received(self, message, self._codec.read(message))
        except (Rejected, TimeoutError) as error:
            return Received(self, message, error=error)

    # Within.

    @property
    def _board(self) -> ExchangeSwitchboard:
        board = self._device.switchboard
        if board is None:
            board = self._device.switchboard = ExchangeSwitchboard(self._device)
        return board

    def _within(self, timeout: float | None) -> int:
        return round((self._timeout if timeout is None else timeout) * SECOND)

    async def _begin(self, draft: Draft) -> Pending[T]:
        handle, answer = await self._device.ask(draft)
        future: asyncio.Future[Received[T]] = asyncio.get_running_loop().create_future()

        def over(answer: asyncio.Future[Any]) -> None:
            if answer.cancelled():
                future.cancel()
            elif not future.done():
                error = answer.exception()
                if error is None:
                    self._settle(future, answer.result())
                elif isinstance(error, TimeoutError | MessageRefused):
                    # Outcomes of the request; any other error means that the device has ended.
                    future.set_result(Received(self, None, error=error))
                else:
                    future.set_exception(error)

        answer.add_done_callback(over)
        future.add_done_callback(lambda done: answer.cancel() if done.cancelled() else None)
        return Pending(handle, future)

    def _settle(self, future: asyncio.Future[Received[T]], message: Message) -> None:
        try:
            future.set_result(self.receive(message))
        except Exception as error:  # A mistake in the binding is for the caller to see.
            future.set_exception(error)

    async def _awaited(self, pending: Pending[T]) -> Received[T]:
        try:
            received = await pending.received()
        except asyncio.CancelledError:
            pending.cancel()
            raise
        if received.error is not None:
            raise received.error
        return received

    async def _begin_for(self, draft: Draft, callback: Handler[T]) -> MessageHandle:
        """Send a request whose outcome goes to a function; functions are called one after the
        other."""
        if not self._calling:
            self._calling = True
            self._device.background(self._call_back())
        pending = await self._begin(draft)
        pending.future.add_done_callback(
            lambda done: None if done.cancelled() else self._due.put_nowait((callback, done))
        )
        return pending.handle

    async def _call_back(self) -> None:
        while True:
            callback, done = await self._due.get()
            if done.exception() is None:  # An exception means that the device has ended.
                await self._handle(callback, done.result())

    def _take(self, callback: Handler[T]) -> Any:
        async def take(message: Message) -> None:
            received = self.receive(message)
            if received.error is not None and message.request is None:
                log.warning("message %s cannot be read: %s", message.id, received.error)
                if message.wants_reply and isinstance(received.error, Rejected):
                    await self._decline(message, received.error)
                return
            await self._handle(callback, received)

        return take

    async def _handle(self, callback: Handler[T], received: Received[T]) -> None:
        """Call a handler and send its result as the answer. If it fails, the sender is told if it
        waits for an answer; otherwise the failure ends the device, and the message comes again."""
        message = received.message
        try:
            result: Any = callback(received)
            if inspect.isawaitable(result):
                result = await result
            await self._follow_up(received, result)
        except Expired:
            log.info("the answer to message %s came too late", message.id if message else "")
        except Exception as error:
            if message is None or not message.wants_reply:
                if isinstance(error, Declined):
                    return  # The sender waits for no answer that could say so.
                raise _failed(message, error) from error
            refused = self._codec.binding.refusal_of(error)
            if refused is not None:
                await self._decline(message, refused)
                return
            log.exception("the handler failed for message %s", message.id)
            await self._decline(message, Declined("failed", "the handler failed"))

    async def _follow_up(self, received: Received[T], result: Result[T]) -> None:
        if result is None or not received.wants_reply:
            return
        if not isinstance(result, Asking):
            await self.reply(received, result)
            return
        then = result.then
        expects = Expectation(callback=then if isinstance(then, str) else "")
        now, within = self._device.now(), self._within(result.timeout)
        draft = self._codec.answer(received.message, result.value, now, within, expects)
        if isinstance(then, str):
            await self._device.post(draft)
        else:
            await self._begin_for(draft, then)

    async def _decline(self, message: Message, error: Rejected) -> None:
        with suppress(Expired):
            await self._device.post(self._codec.decline(message, error, self._device.now()))


def _failed(message: Message | None, error: Exception) -> Exception:
    return error if message is None else HandlerFailed(message, error)
