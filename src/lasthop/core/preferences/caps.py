"""Counts of messages sent to a device, for its caps."""

from __future__ import annotations

import msgspec

from lasthop.decision.preferences import Cap, Preferences
from lasthop.decision.schedule import CapCounter

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[Cap, CapCounter]]).decode


class Caps:
    """The caps of one device, each with its count."""

    def __init__(self, preferences: Preferences) -> None:
        self._counted: list[tuple[Cap, CapCounter]] = []
        self.change(preferences)

    def change(self, preferences: Preferences) -> None:
        """Replace the caps. A cap that differs only in its limit keeps its count."""
        known = {(cap.period, cap.queues): counter for cap, counter in self._counted}
        self._counted = []
        for cap in preferences.caps:
            old = known.get((cap.period, cap.queues))
            sent, ends = (old.sent, old.ends) if old is not None else (0, 0)
            counter = CapCounter(cap.limit, cap.period, preferences.zone, sent, ends)
            self._counted.append((cap, counter))

    def covering(self, queue: str | None) -> list[CapCounter]:
        """Return the counters that count a message of this queue."""
        if not self._counted:
            return []
        return [counter for cap, counter in self._counted if cap.covers(queue)]

    def encode(self) -> bytes:
        """Return the caps and counts as the store keeps them."""
        return _encode(self._counted)

    def restore(self, state: bytes, preferences: Preferences) -> None:
        """Restore the counts from the store, for the caps of these preferences."""
        self._counted = _decode(state)
        self.change(preferences)
