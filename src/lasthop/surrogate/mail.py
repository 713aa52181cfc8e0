"""What passes between a gateway and a surrogate: a message on its way, and the verdict on it.

Only these structures cross the border between the gateway's process and the worker's, as msgpack. A
worker's bytes are not trusted: decoding checks their form, and the core checks everything else.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, TypeAlias

import msgspec

from lasthop.clock import Micros
from lasthop.message import DEFAULT_CONTENT_TYPE, DEFAULT_PRIORITY

Headers: TypeAlias = tuple[tuple[str, str], ...]

_Name = Annotated[str, msgspec.Meta(max_length=512)]
_Reason = Annotated[str, msgspec.Meta(max_length=1000)]
_Headers = Annotated[Headers, msgspec.Meta(max_length=256)]


class Way(IntEnum):
    """The direction of a message: to a device, or from one."""

    TO_DEVICE = 0
    FROM_DEVICE = 1


class Content(msgspec.Struct, frozen=True, array_like=True):
    """The content of a message, as far as a surrogate may write it."""

    body: bytes = b""
    content_type: _Name = DEFAULT_CONTENT_TYPE
    title: _Name | None = None
    headers: _Headers = ()
    rank: float = 0.0


class Mail(msgspec.Struct, frozen=True, array_like=True):
    """A message on its way to or from one device, as a surrogate sees it.

    `source` and `target` are addresses such as `device:phone-1` or `topic:news`; `key` is the
    message's key, `user` the device's user; `attempt` counts from 1.
    """

    number: int
    """The number of the input; another attempt at the same message has the same number."""
    way: Way
    device: str
    """The device that the message is for, or that sent it."""
    key: int
    content: Content
    at: Micros
    """The time of the input in microseconds; use it in place of the system's clock."""
    online: bool = False
    """Whether the device is connected to the gateway."""
    source: str = ""
    target: str = ""
    user: str = ""
    queue: str | None = None
    priority: int = DEFAULT_PRIORITY
    deliver_before: Micros | None = None
    reply_before: Micros | None = None
    """The time until which the sender waits for an answer; None if it waits for none."""
    answers: int = 0
    """The key of the message that a device's message answers; 0 if it is not an answer."""
    attempt: int = 1

    @property
    def body(self) -> bytes:
        """The bytes of the message, unchanged by the gateway."""
        return self.content.body

    @property
    def title(self) -> str | None:
        """The headline of the message for people; None if it has none."""
        return self.content.title

    @property
    def content_type(self) -> str:
        """The media type of the message's body."""
        return self.content.content_type

    @property
    def headers(self) -> dict[str, str]:
        """The message's own headers by name, in lower case."""
        return {name.lower(): value for name, value in self.content.headers}

    @property
    def method(self) -> str:
        """The value of the message's header `method`, which names what a request asks for; empty if
        there is none."""
        return self.headers.get("method", "")


class OutgoingMail(msgspec.Struct, frozen=True, array_like=True):
    """An additional message that a surrogate sends."""

    to: _Name
    content: Content
    priority: Annotated[int, msgspec.Meta(ge=0, le=9)] = DEFAULT_PRIORITY
    ttl: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """Microseconds after which the message is not delivered any more; None: no limit."""


class MailAction(IntEnum):
    """What is done with the message that a surrogate was asked about."""

    RELAY = 0
    ANSWER = 1
    DROP = 2


class Verdict(msgspec.Struct, frozen=True, array_like=True):
    """Everything that an input causes. It takes effect as a whole, or not at all."""

    action: MailAction = MailAction.RELAY
    content: Content | None = None
    """The content of the answer, or the changed content of the relayed message; None relays it
    unchanged."""
    reason: _Reason = ""
    sends: tuple[OutgoingMail, ...] = ()
    state: dict[str, bytes] = {}
    """The entries of the state that have changed; an empty value deletes the entry."""


def changed(before: Content, after: Content) -> list[str]:
    """Return the names of the fields in which two contents differ."""
    names = Content.__struct_fields__
    return [name for name in names if getattr(before, name) != getattr(after, name)]
