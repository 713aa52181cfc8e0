"""What passes between a gateway and a surrogate: a message on its way, and what becomes of it.

These are the only things that cross the border between the gateway's process and the worker's, as
msgpack. Bytes from a worker are somebody else's: what is decoded here has its form, and the core
checks everything else before it believes it.
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
    """Which way a message goes."""

    TO_DEVICE = 0
    FROM_DEVICE = 1


class Content(msgspec.Struct, frozen=True, array_like=True):
    """What a message says, as far as a surrogate may write it."""

    body: bytes = b""
    content_type: _Name = DEFAULT_CONTENT_TYPE
    title: _Name | None = None
    headers: _Headers = ()
    rank: float = 0.0


class Mail(msgspec.Struct, frozen=True, array_like=True):
    """A message as a surrogate sees it: one message, one device, on its way."""

    number: int
    """Of the input. The same number comes again when an earlier attempt came to nothing."""
    way: Way
    device: str
    """The device that it is for, or that sent it."""
    key: int
    content: Content
    at: Micros
    """The time, for everything that depends on it."""
    online: bool = False
    """Whether the device is in contact."""
    source: str = ""
    target: str = ""
    user: str = ""
    queue: str | None = None
    priority: int = DEFAULT_PRIORITY
    deliver_before: Micros | None = None
    reply_before: Micros | None = None
    """Until when its sender waits for an answer; none is waited for without."""
    answers: int = 0
    """The key of the message that this one of a device answers; 0 if it is no answer."""
    attempt: int = 1

    @property
    def body(self) -> bytes:
        """What it carries."""
        return self.content.body

    @property
    def title(self) -> str | None:
        """Its line for people, if it has one."""
        return self.content.title

    @property
    def content_type(self) -> str:
        """What its body is."""
        return self.content.content_type

    @property
    def headers(self) -> dict[str, str]:
        """Its headers by name, in lower case."""
        return {name.lower(): value for name, value in self.content.headers}

    @property
    def method(self) -> str:
        """What a request asks for: its header `method`."""
        return self.headers.get("method", "")


class OutgoingMail(msgspec.Struct, frozen=True, array_like=True):
    """One more message that a surrogate sends."""

    to: _Name
    content: Content
    priority: Annotated[int, msgspec.Meta(ge=0, le=9)] = DEFAULT_PRIORITY
    ttl: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """Microseconds after which nobody wants it any more."""


class MailAction(IntEnum):
    """What becomes of a message."""

    RELAY = 0
    ANSWER = 1
    DROP = 2


class Verdict(msgspec.Struct, frozen=True, array_like=True):
    """All that came of one input. It counts as a whole, or not at all."""

    action: MailAction = MailAction.RELAY
    content: Content | None = None
    """Of the answer, or of the message that goes on changed; none lets it go on as it is."""
    reason: _Reason = ""
    sends: tuple[OutgoingMail, ...] = ()
    state: dict[str, bytes] = {}
    """Entries of the state that have changed; an empty one is gone."""


def changed(before: Content, after: Content) -> list[str]:
    """What differs, by name."""
    names = Content.__struct_fields__
    return [name for name in names if getattr(before, name) != getattr(after, name)]
