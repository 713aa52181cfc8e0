"""Inputs of a feed: everything it is told, as values, so that a log of them is enough for a
replay."""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """The topic has a new event, or a known event with another rank."""

    key: int
    rank: float
    expires_at: Micros | None = None


class RankChanged(msgspec.Struct, frozen=True, gc=False):
    """The publisher has changed the rank of an event."""

    key: int
    rank: float


class EventWithdrawn(msgspec.Struct, frozen=True, gc=False):
    """The publisher has taken an event back."""

    key: int


class OfflineRead(msgspec.Struct, frozen=True, gc=False):
    """The user read without contact, only what was on the device."""

    at: Micros
    wanted: int | None
    keys: tuple[int, ...]


class ContactUp(msgspec.Struct, frozen=True, gc=False):
    """The device is in contact again, and reports what the gateway could not see."""

    reads: tuple[OfflineRead, ...] = ()
    lost: tuple[int, ...] = ()
    """Keys of events that were forwarded but are not on the device: lost in a reset, or never
    arrived."""


NOTHING_NEW = ContactUp()
"""A contact with nothing to report, as most are."""


class ContactDown(msgspec.Struct, frozen=True, gc=False):
    """The device is out of contact."""


class Held(msgspec.Struct, frozen=True, gc=False):
    """An unread event, as the device reports it."""

    key: int
    rank: float
    expires_at: Micros | None = None


class Read(msgspec.Struct, frozen=True, gc=False):
    """The user wants to see the best events: READ of figure 7 of the last-hop paper. The device
    does not ask for data, but for better data than it has."""

    wanted: int | None
    """How many events the user wants (N); `None`: as many as Max allows."""
    queue_size: int = 0
    """Number of unread events on the device, including `client_events`."""
    client_events: tuple[Held, ...] = ()
    """The best unread events on the device, at most N."""


class Gone(msgspec.Struct, frozen=True, gc=False):
    """The device no longer has these unread events, because they expired there."""

    keys: tuple[int, ...]


class Lost(msgspec.Struct, frozen=True, gc=False):
    """The device has lost these events with its memory; the gateway may send them again."""

    keys: tuple[int, ...]


class Unread(msgspec.Struct, frozen=True, gc=False):
    """The answer to a read came too late to be shown: these events are still unread on the
    device."""

    events: tuple[Held, ...]


class StorageChanged(msgspec.Struct, frozen=True, gc=False):
    """The device has room for `limit` unread events; `None`: for any number."""

    limit: int | None


class Muted(msgspec.Struct, frozen=True, gc=False):
    """The user's context (a meeting, a film) makes an on-line topic quiet, or no longer does."""

    quiet: bool


class Woken(msgspec.Struct, frozen=True, gc=False):
    """The moment that the feed's `next_wake` named has come."""


Input = (
    Arrived
    | OfflineRead
    | RankChanged
    | EventWithdrawn
    | ContactUp
    | ContactDown
    | Read
    | Gone
    | Lost
    | Unread
    | StorageChanged
    | Muted
    | Woken
)
