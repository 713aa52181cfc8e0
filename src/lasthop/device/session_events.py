"""What a session tells its owner: what became of messages, in both directions."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from lasthop.clock import Micros
from lasthop.device.message import Message, Refusal
from lasthop.wire.hop.decisions import GroupDecision


class MessageSent(msgspec.Struct, frozen=True):
    """A message of ours left over the open channel; it may have to leave again."""

    key: int


class MessageAccepted(msgspec.Struct, frozen=True):
    """The gateway has a message of ours: it is safe there."""

    key: int


class Refused(msgspec.Struct, frozen=True):
    """The gateway has it and will not act on it."""

    key: int
    refusal: Refusal


class RequestAnswered(msgspec.Struct, frozen=True):
    """The answer to a request of ours came in time."""

    key: int
    message: Message


class TimedOut(msgspec.Struct, frozen=True):
    """The answer to a request of ours did not come in time."""

    key: int


class Gathered(msgspec.Struct, frozen=True):
    """What many have answered, by device and in the order in which it came."""

    key: int
    replies: dict[str, Message]
    missing: tuple[str, ...] | None
    """Who was asked and has not answered; None: the gateway has not said who was asked."""
    complete: bool
    """Whether it ended before its deadline."""


RequestOutcome: TypeAlias = RequestAnswered | TimedOut | Gathered
"""How a request of the moment has ended."""


class Looked(msgspec.Struct, frozen=True):
    """The gateway answered a look: the best of what there is."""

    key: int
    messages: list[Message]


class Retracted(msgspec.Struct, frozen=True):
    """A message of a ranked topic is not worth showing any more; if the application has `had` it,
    that is for the application to deal with."""

    key: int
    had: bool


class Withdrawn(msgspec.Struct, frozen=True):
    """A topic's publisher will send no more to it."""

    topic: str


class Lapsed(msgspec.Struct, frozen=True):
    """A message came, or came to its turn, after its deadline: the application does not get it."""

    message: Message


class Decided(msgspec.Struct, frozen=True):
    """What was decided about a claim or a group message of ours."""

    key: int
    decision: GroupDecision


class LinksWanted(msgspec.Struct, frozen=True):
    """Messages wait at the gateway for one of these links, the best first."""

    links: tuple[str, ...]


class LinkSpent(msgspec.Struct, frozen=True):
    """A link has reached a limit of what we send, and is not to be used before that has passed."""

    channel: int
    link: str
    until: Micros


class StreamStirred(msgspec.Struct, frozen=True):
    """Something about a stream is different: more has come, there is room, or it has ended."""

    key: int


class Fetched(msgspec.Struct, frozen=True):
    """The body of a message that was pulled has come; without one, the reason why not."""

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
