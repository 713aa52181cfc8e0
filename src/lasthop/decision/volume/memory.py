"""A feed as plain values: what a store keeps of it, so that it decides as before after a stop."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from lasthop.clock import Micros
from lasthop.decision.volume.entry import Place


class AgendaState(msgspec.Struct, array_like=True, frozen=True):
    """Where a subscription is in its day."""

    quiet: bool = False
    muted: bool = False
    due: bool = False
    next_change: Micros | None = None
    day: int | None = None
    """The calendar day that `shown_today` counts, as its ordinal."""
    shown_today: int = 0


class FeedState(msgspec.Struct, array_like=True, frozen=True):
    """What a feed knows besides its events and what its policy has learned."""

    agenda: AgendaState = AgendaState()
    strangers: int = 0
    news: tuple[tuple[int, float | None], ...] = ()
    """What the device is to learn on contact: key and new rank, or no rank: it is retracted."""
    storage: int | None = None
    """Room on the device, as it said last."""


class EntryState(NamedTuple):
    """One event that is not over."""

    key: int
    rank: float
    expires_at: Micros | None
    arrived_at: Micros
    place: Place
    due: Micros
    """When a delayed one may go."""
