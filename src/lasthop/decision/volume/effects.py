"""Effects of a feed: everything that it wants done, each with its reason."""

from __future__ import annotations

import msgspec


class Forward(msgspec.Struct, frozen=True, gc=False):
    """Send the event to the device, which keeps it until it is shown."""

    key: int
    reason: str
    instead_of: int | None = None
    """The unread event that the device drops for this one because its storage is full; None:
    none."""


class Show(msgspec.Struct, frozen=True, gc=False):
    """Show these events to the user now, best first; they leave the device's queue."""

    keys: tuple[int, ...]
    reason: str


class Retract(msgspec.Struct, frozen=True, gc=False):
    """Let the device forget an unread event."""

    key: int
    reason: str


class Rerank(msgspec.Struct, frozen=True, gc=False):
    """Tell the device the new rank of an event that it holds."""

    key: int
    rank: float


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Keep the event at the gateway for now."""

    key: int
    reason: str


class DropEvent(msgspec.Struct, frozen=True, gc=False):
    """Give up an event at the gateway that the device never got."""

    key: int
    reason: str


Effect = Forward | Show | Retract | Rerank | Hold | DropEvent
