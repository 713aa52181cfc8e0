"""Everything that a feed wants done, each with its reason."""

from __future__ import annotations

import msgspec


class Forward(msgspec.Struct, frozen=True, gc=False):
    """Send the event to the device, which keeps it until it is shown."""

    key: int
    reason: str
    instead_of: int | None = None
    """The unread event that the device drops for it: its storage is full."""


class Show(msgspec.Struct, frozen=True, gc=False):
    """These go to the user now, best first; they leave the device's queue."""

    keys: tuple[int, ...]
    reason: str


class Retract(msgspec.Struct, frozen=True, gc=False):
    """The device forgets the event, unread."""

    key: int
    reason: str


class Rerank(msgspec.Struct, frozen=True, gc=False):
    """The device holds the event and learns its new rank."""

    key: int
    rank: float


class Hold(msgspec.Struct, frozen=True, gc=False):
    """The event stays at the gateway for now."""

    key: int
    reason: str


class Drop(msgspec.Struct, frozen=True, gc=False):
    """The event's time at the gateway is over, and the device never got it."""

    key: int
    reason: str


Effect = Forward | Show | Retract | Rerank | Hold | Drop
