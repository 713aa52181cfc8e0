"""A feed as plain values: what a store keeps of it, so that it decides after a restart as
before."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from lasthop.clock import Micros
from lasthop.decision.volume.entry import Place


class AgendaState(msgspec.Struct, array_like=True, frozen=True):
    """The stored state of a subscription's agenda."""

    quiet: bool = False
    muted: bool = False
    due: bool = False
    next_change: Micros | None = None
    day: int | None = None
    """The calendar day that `shown_today` counts, as its ordinal."""
    shown_today: int = 0


class FeedState(msgspec.Struct, array_like=True, frozen=True):
    """The stored state of a feed, without its events and without what its policy has learned."""

    agenda: AgendaState = AgendaState()
    strangers: int = 0
    news: tuple[tuple[int, float | None], ...] = ()
    """What the device is to be told at the next contact: the new rank of an event, by its key; None
    if the event was retracted."""
    storage: int | None = None
    """How many unread events the device has room for, as it last reported; None: any number."""


class EntryState(NamedTuple):
    """The stored state of one event that is not over."""

    key: int
    rank: float
    expires_at: Micros | None
    arrived_at: Micros
    place: Place
    due: Micros
    """When a delayed event may go to the device."""
