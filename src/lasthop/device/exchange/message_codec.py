"""From values to messages and back, with the headers that exchanges use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypedDict, TypeVar

from lasthop.clock import Micros
from lasthop.device import compose
from lasthop.device.compose import Draft, Options
from lasthop.device.exchange.binding import Binding, Content
from lasthop.device.exchange.declining import as_declined, declined, encode
from lasthop.device.exchange.received import CALLBACK_HEADER, SENDER_HEADER
from lasthop.device.handle import MessageRefused
from lasthop.device.message import Message, refusal
from lasthop.device.requests.expectation import Expectation
from lasthop.errors import Rejected
from lasthop.wire.hop.services import DECLINED_TYPE, OPERATION_HEADER

T = TypeVar("T")


class SendOptions(TypedDict, total=False):
    """Options of every message that an exchange sends, all of them optional; `priority`, `title`,
    `expires_in` and `headers` are those of `Device.send`."""

    operation: str
    """The operation of the receiver's service that the message asks for."""
    sender: str
    """The name of a callback registered here, to which the receiver may send at any later time."""
    priority: int
    title: str
    expires_in: float
    headers: Mapping[str, str]


class MessageCodec(Generic[T]):
    """Makes drafts from values, and values from messages, with one binding."""

    __slots__ = ("binding",)

    def __init__(self, binding: Binding[T]) -> None:
        self.binding = binding

    def write(
        self,
        target: str,
        value: T,
        send_options: SendOptions,
        within: Micros | None = None,
        expects: Expectation | None = None,
    ) -> Draft:
        """Return the draft of a message to a target, or to a callback of a device:
        `device:NAME#CALLBACK`. With `within` it is a request."""
        target, _, callback = target.partition("#")
        content = self.binding.encode(value, target)
        headers = dict(send_options.get("headers", {})) | dict(content.headers)
        named = {
            CALLBACK_HEADER: callback,
            OPERATION_HEADER: send_options.get("operation", ""),
            SENDER_HEADER: send_options.get("sender", ""),
        }
        headers |= {name: text for name, text in named.items() if text}
        options: Options = {"content_type": content.content_type, "headers": headers}
        if "priority" in send_options:
            options["priority"] = send_options["priority"]
        if "title" in send_options:
            options["title"] = send_options["title"]
        if "expires_in" in send_options:
            options["expires_in"] = send_options["expires_in"]
        return compose.message(
            target, content.body, reply_within=within, expects=expects, **options
        )

    def answer(
        self,
        to: Message | None,
        value: T,
        now: Micros,
        within: Micros | None = None,
        expects: Expectation | None = None,
    ) -> Draft:
        """Return the draft of the answer to a message. Raises Expired if its sender no longer
        waits."""
        if to is None:
            raise ValueError("there is no message to answer")
        content = self.binding.encode(value, to.source or "")
        return _reply(to, content, now, within, expects)

    def decline(self, to: Message, error: Rejected, now: Micros) -> Draft:
        """Return the draft of an answer that carries an error, in the payload's own form if it has
        one. Raises Expired if the sender no longer waits."""
        content = self.binding.decline(error, to.source or "")
        if content is None:
            content = Content(DECLINED_TYPE, encode(as_declined(error)))
        return _reply(to, content, now)

    def read(self, message: Message) -> T:
        """Return the value of a message. Raises the error that stands for it: TimeoutError,
        MessageRefused, Declined, or Rejected if the body cannot be decoded."""
        if message.timed_out:
            raise TimeoutError("no answer came in time")
        told = refusal(message)
        if told is not None:
            raise MessageRefused(told, f"{message.in_reply_to or 0:016x}")
        against = declined(message)
        if against is not None:
            raise against
        content = Content(message.content_type, message.body, message.headers.extra)
        return self.binding.decode(content, message.source or "")


def _reply(
    to: Message,
    content: Content,
    now: Micros,
    within: Micros | None = None,
    expects: Expectation | None = None,
) -> Draft:
    return compose.reply(
        to,
        content.body,
        now,
        reply_within=within,
        expects=expects,
        content_type=content.content_type,
        headers=dict(content.headers),
    )
