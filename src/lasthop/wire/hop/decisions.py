"""What the gateway says about a message for a group: one byte, and the name of a device where one
is meant. The message that it is about is named by `in_reply_to`."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from lasthop.errors import MalformedFrame

MAX_NAME: Final = 1024
"""Bytes of a device's name: four times what any door takes."""


class GroupVerdict(IntEnum):
    """What was decided. About a message that the receiver has:"""

    RELEASE = 1
    """Every member has it: show it, here and now in the order of messages."""
    ABORT = 2
    """Not every member will have it: forget it, unseen."""
    RETRACT = 3
    """Somebody else has claimed it, or nobody may any more: do not act on it."""
    # About the receiver's own claim.
    GRANT = 4
    DENY = 5
    # About a message that the receiver sent.
    RELEASED = 6
    ABORTED = 7
    CLAIMED = 8
    UNCLAIMED = 9


class GroupDecision(msgspec.Struct, frozen=True, gc=False):
    """One decision."""

    verdict: GroupVerdict
    by: str = ""
    """The device that claimed it."""


def encode_decision(decision: GroupDecision) -> bytes:
    """The body of a DECISION message."""
    return bytes((decision.verdict,)) + decision.by.encode()


def decode_decision(body: bytes) -> GroupDecision:
    """A decision, or the gateway is at fault."""
    if not body or len(body) > 1 + MAX_NAME:
        raise MalformedFrame("a decision is one byte and a name", size=len(body))
    try:
        return GroupDecision(GroupVerdict(body[0]), body[1:].decode())
    except ValueError:
        raise MalformedFrame("a decision that is not known", value=body[:8].hex()) from None
