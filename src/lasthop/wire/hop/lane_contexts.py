"""What one direction of a channel remembers of its lanes, so that most numbers, keys and counts are
not written out.

Encoder and decoder keep the same contexts in the same order, so they forget the same ones. What was
forgotten begins again at zero, and is written out once.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from lasthop.wire.hop.frames import MAX_LANES

MOST_CONTEXTS: Final = 2 * MAX_LANES
"""The largest number of lanes that a channel remembers in each role: those that can be open, and as
many that have closed since."""


class MessageContext(NamedTuple):
    """The next number of a lane, and the key of its last message."""

    next: int
    key: int


class AckContext(NamedTuple):
    """The counts that were acknowledged last in a lane."""

    received: int
    delivered: int


_NOTHING: Final = AckContext(0, 0)
C = TypeVar("C")


class LaneContexts:
    """The contexts of one direction of one channel."""

    __slots__ = ("_acks", "_last_key", "_messages")

    def __init__(self) -> None:
        self._messages: dict[int, MessageContext] = {}
        self._acks: dict[int, AckContext] = {}
        self._last_key = 0

    def next_message(self, lane: int, key: int) -> MessageContext:
        """Return the context of a lane's messages; `key` is the last one of lane 0. A lane that is
        new on the channel begins at number 0, behind the last key of whichever is greater: lane 0,
        or the lane that sent last."""
        return self._messages.get(lane) or MessageContext(0, max(key, self._last_key))

    def note_message(self, lane: int, context: MessageContext) -> None:
        """Remember what the next message of a lane is relative to."""
        self._last_key = context.key
        _put(self._messages, lane, context)

    def last_acknowledged(self, lane: int) -> AckContext:
        """Return the counts that were acknowledged last in a lane; zeros on a new channel."""
        return self._acks.get(lane, _NOTHING)

    def note_ack(self, lane: int, context: AckContext) -> None:
        """Remember what the next acknowledgement of a lane is relative to."""
        _put(self._acks, lane, context)


def _put(contexts: dict[int, C], lane: int, context: C) -> None:
    """Set a context; the one that was made first is forgotten when there are too many."""
    contexts[lane] = context
    if len(contexts) > MOST_CONTEXTS:
        del contexts[next(iter(contexts))]
