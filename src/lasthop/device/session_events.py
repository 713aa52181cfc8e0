"""The events by which a session reports what became of messages, in both directions."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from lasthop.clock import Micros
from lasthop.device.message import Message, Refusal
from lasthop.wire.hop.decisions import GroupDecision


class MessageSent(msgspec.Struct, frozen=True):
    """A message of this device left over the open channel; it may have to be sent again."""

    key: int


class MessageAccepted(msgspec.Struct, frozen=True):
    """The gateway has acknowledged a message of this device: it is safe there."""

    key: int


class Refused(msgspec.Struct, frozen=True):
    """The gateway has a message of this device and will not act on it."""

    key: int
    refusal: Refusal


class RequestAnswered(msgspec.Struct, frozen=True):
    """The answer to a request of this device came in time."""

    key: int
    message: Message


class TimedOut(msgspec.Struct, frozen=True):
    """The answer to a request of this device did not come in time."""

    key: int


class Gathered(msgspec.Struct, frozen=True):
    """The answers of many devices to one request: `replies` by device name, in the order in which
    they came."""

    key: int
    replies: dict[str, Message]
    missing: tuple[str, ...] | None
    """The devices that were asked and have not answered; None if the gateway has not said which
    devices were asked."""
    complete: bool
    """Whether enough answers came before the deadline."""


RequestOutcome: TypeAlias = RequestAnswered | TimedOut | Gathered
"""The end of a request without a named callback."""


class Looked(msgspec.Struct, frozen=True):
    """The gateway's answer to a question for the best messages of a ranked topic."""

    key: int
    messages: list[Message]


class Retracted(msgspec.Struct, frozen=True):
    """A message of a ranked topic is no longer worth showing; if the application already `had` it,
    the application has to remove it from view."""

    key: int
    had: bool


class Withdrawn(msgspec.Struct, frozen=True):
    """The publisher of a topic will send no more messages to it."""

    topic: str


class Lapsed(msgspec.Struct, frozen=True):
    """A message's deadline passed before its turn came: the application does not get it."""

    message: Message


class Decided(msgspec.Struct, frozen=True):
    """A decision about a claim or a group message of this device."""

    key: int
    decision: GroupDecision


class LinksWanted(msgspec.Struct, frozen=True):
    """Messages wait until one of these links is open; the best link is first."""

    links: tuple[str, ...]


class LinkSpent(msgspec.Struct, frozen=True):
    """A link has reached a limit on what this device may send, and is not used before `until`."""

    channel: int
    link: str
    until: Micros


class StreamStirred(msgspec.Struct, frozen=True):
    """A stream has changed: more data has come, there is room to write, or it has ended."""

    key: int


class Fetched(msgspec.Struct, frozen=True):
    """The result of fetching the body of a message that was left at the gateway: the body, or None
    and the reason."""

    key: int
    body: bytes | None
    reason: str = ""


SessionEvent: TypeAlias = (
    LinksWanted
    | LinkSpent
    | MessageSent
    | MessageAccepted
    | Refused
    | RequestOutcome
    | Lapsed
    | Looked
    | Retracted
    | Withdrawn
    | Decided
    | StreamStirred
    | Fetched
)
