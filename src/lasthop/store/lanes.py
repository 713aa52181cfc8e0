"""The rows of lanes beside lane 0. A commit of a device without such lanes has no such rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class SessionLaneRow(msgspec.Struct, array_like=True, gc=False):
    """One lane of a device's session, or (lane 0) what all lanes of one direction share; the record
    is opaque to the store. A row with an empty record removes that lane."""

    device: int
    inbound: bool
    """Whether the device opened the lane."""
    lane: int
    record: bytes


class LaneChanges(msgspec.Struct):
    """The changes of lanes in one commit. If two rows have the same key, the later one is
    stored."""

    lanes: dict[tuple[int, bool, int], SessionLaneRow] = {}


class LanesRestored(msgspec.Struct, frozen=True):
    """The rows of lanes when a store is opened."""

    lanes: Iterable[SessionLaneRow] = ()
