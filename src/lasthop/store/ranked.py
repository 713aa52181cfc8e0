"""What a store keeps of ranked topics. Commits of plain traffic have none of it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros


class FeedRow(msgspec.Struct, array_like=True):
    """A part of one device's feed of one topic; `record` is opaque to the store. An empty one
    removes all parts."""

    device: int
    topic: str
    part: int
    """0 changes with everything that happens, 1 seldom and is larger."""
    record: bytes


class KeptRow(msgspec.Struct, array_like=True, gc=False):
    """An open delivery of a ranked topic, as its feed knows it."""

    message: int
    device: int
    topic: str
    place: int
    """0: it is over, and the row goes."""
    rank: float
    expires_at: Micros | None
    arrived_at: Micros
    due: Micros
    stamp: int
    """Its turn among what waits to be sent; 0 if it does not."""
    keep: bool = False
    """Whether it leaves to be kept on the device."""
    forget: bool = False
    """Whether the device is to forget it as soon as it has it."""


class TopicRow(msgspec.Struct, array_like=True):
    """A topic that its publisher has advertised, or withdrawn."""

    app: str
    topic: str
    source: str
    title: str
    advertised_at: Micros
    withdrawn_at: Micros = 0


class RankedChanges(msgspec.Struct):
    """What one commit changes. Of two rows for the same key the later one counts."""

    feeds: dict[tuple[int, str, int], FeedRow] = {}
    kept: dict[tuple[int, int], KeptRow] = {}
    ranks: dict[int, float] = {}
    """New ranks of messages; from now on they are read with these."""
    topics: dict[tuple[str, str], TopicRow] = {}


class RankedRestored(msgspec.Struct, frozen=True):
    """What there is when a store is opened."""

    feeds: Iterable[FeedRow] = ()
    kept: Iterable[KeptRow] = ()
    topics: Iterable[TopicRow] = ()
