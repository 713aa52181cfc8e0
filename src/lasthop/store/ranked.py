"""The rows of ranked topics. A commit of plain traffic has no such rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros


class FeedRow(msgspec.Struct, array_like=True):
    """One part of the state of a device's feed for one topic; `record` is opaque to the store. A
    row with an empty record removes all parts of that state."""

    device: int
    topic: str
    part: int
    """The part's number: 0 changes with every event of the feed, 1 is larger and changes seldom."""
    record: bytes


class KeptRow(msgspec.Struct, array_like=True, gc=False):
    """An open delivery of a ranked topic, as its feed knows it."""

    message: int
    device: int
    topic: str
    place: int
    """The number of the place where the feed keeps the delivery; 0 if the delivery is finished and
    the row is to be removed."""
    rank: float
    expires_at: Micros | None
    arrived_at: Micros
    due: Micros
    stamp: int
    """The delivery's turn among those that wait to be sent; 0 if it does not wait."""
    keep: bool = False
    """Whether the message is sent to be kept on the device, unseen."""
    forget: bool = False
    """Whether the device is to forget the message as soon as it has it."""


class TopicRow(msgspec.Struct, array_like=True):
    """A topic that its publisher has advertised or withdrawn."""

    app: str
    topic: str
    source: str
    title: str
    advertised_at: Micros
    withdrawn_at: Micros = 0


class RankedChanges(msgspec.Struct):
    """The changes of ranked topics in one commit. If two rows have the same key, the later one is
    stored."""

    feeds: dict[tuple[int, str, int], FeedRow] = {}
    kept: dict[tuple[int, int], KeptRow] = {}
    ranks: dict[int, float] = {}
    """New ranks by message; messages that are read later have these ranks."""
    topics: dict[tuple[str, str], TopicRow] = {}


class RankedRestored(msgspec.Struct, frozen=True):
    """The rows of ranked topics when a store is opened."""

    feeds: Iterable[FeedRow] = ()
    kept: Iterable[KeptRow] = ()
    topics: Iterable[TopicRow] = ()
