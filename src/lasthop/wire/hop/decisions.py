"""Decisions of the gateway about a message for a group: one byte, and the name of a device where
one is meant. The header `in_reply_to` names the message (docs/hop-protocol.md, "Groups and
queues")."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from lasthop.errors import MalformedFrame

MAX_NAME: Final = 1024
"""The largest number of bytes in a device's name: four times what any door accepts."""


class GroupVerdict(IntEnum):
    """The gateway's decision about a held message, a claim or a message that the receiver sent."""

    RELEASE = 1
    """About a received message: every member has it; show it now, at this place in the order."""
    ABORT = 2
    """About a received message: not every member will get it; forget it without showing it."""
    RETRACT = 3
    """About a received message: another device has claimed it, or claims are closed; do not act on
    it."""
    # About the receiver's own claim.
    GRANT = 4
    DENY = 5
    # About a message that the receiver sent.
    RELEASED = 6
    ABORTED = 7
    CLAIMED = 8
    UNCLAIMED = 9


class GroupDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision of the gateway, with the device that claimed the message."""

    verdict: GroupVerdict
    by: str = ""
    """The name of the device that claimed the message; empty if there is none."""


def encode_decision(decision: GroupDecision) -> bytes:
    """Encode the body of a DECISION message."""
    return bytes((decision.verdict,)) + decision.by.encode()


def decode_decision(body: bytes) -> GroupDecision:
    """Decode the body of a DECISION message; raise MalformedFrame."""
    if not body or len(body) > 1 + MAX_NAME:
        raise MalformedFrame("a decision must be one byte and a name", size=len(body))
    try:
        return GroupDecision(GroupVerdict(body[0]), body[1:].decode())
    except ValueError:
        raise MalformedFrame(
            "a decision has an unknown code or an invalid name", value=body[:8].hex()
        ) from None
