"""Everything that a feed is told, as values: what is logged of them is enough to replay it."""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """The topic has a new event, or a known one with another rank."""

    key: int
    rank: float
    expires_at: Micros | None = None


class RankChanged(msgspec.Struct, frozen=True, gc=False):
    """The publisher thinks better or worse of an event."""

    key: int
    rank: float


class Withdrawn(msgspec.Struct, frozen=True, gc=False):
    """The publisher has taken an event back."""

    key: int


class OfflineRead(msgspec.Struct, frozen=True, gc=False):
    """The user read without contact; what was on the device had to do."""

    at: Micros
    wanted: int | None
    keys: tuple[int, ...]


class ContactUp(msgspec.Struct, frozen=True, gc=False):
    """The device is back, and says what the gateway could not see."""

    reads: tuple[OfflineRead, ...] = ()
    lost: tuple[int, ...] = ()
    """What was forwarded and is not there: it fell to a reset, or never arrived."""


NOTHING_NEW = ContactUp()
"""As most contacts begin."""


class ContactDown(msgspec.Struct, frozen=True, gc=False):
    """The device is out of reach."""


class Held(msgspec.Struct, frozen=True, gc=False):
    """An event as the device has it."""

    key: int
    rank: float
    expires_at: Micros | None = None


class Read(msgspec.Struct, frozen=True, gc=False):
    """READ of figure 7: the user wants to see the best. Not a request for data, but for better
    data, if there is any."""

    wanted: int | None
    """N; `None` for as many as Max allows."""
    queue_size: int = 0
    """Unread events on the device, the N included."""
    client_events: tuple[Held, ...] = ()
    """The best of them, at most N."""


class Gone(msgspec.Struct, frozen=True, gc=False):
    """The device no longer has these unread events: their time was up there."""

    keys: tuple[int, ...]


class Lost(msgspec.Struct, frozen=True, gc=False):
    """These fell with the device's memory: they are the gateway's again."""

    keys: tuple[int, ...]


class Unread(msgspec.Struct, frozen=True, gc=False):
    """The answer to a read came when nobody waited for it any more: these are unread after all, on
    the device."""

    events: tuple[Held, ...]


class StorageChanged(msgspec.Struct, frozen=True, gc=False):
    """The device has room for so many unread events; `None`: for all."""

    limit: int | None


class Muted(msgspec.Struct, frozen=True, gc=False):
    """The user's context (a meeting, a film) makes an on-line topic quiet, or no longer."""

    quiet: bool


class Woken(msgspec.Struct, frozen=True, gc=False):
    """The moment has come that the feed asked for."""


Input = (
    Arrived
    | OfflineRead
    | RankChanged
    | Withdrawn
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
