"""The demo's own record of what publishers sent and what applications saw, made without asking the
gateway.

A *lane* is one publisher's messages to one device, numbered from 1. A publisher sends the messages
of a lane one after the other, so their order is known; each message must be seen once, in that
order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple


class LedgerLane(NamedTuple):
    """The messages of one publisher to one device."""

    publisher: str
    device: str


@dataclass(slots=True)
class LedgerEntry:
    """The record of one message of a lane."""

    sent_at: float
    """The time of sending in seconds, by the clock of the demo."""
    accepted: str | None = None
    """The id under which the gateway accepted the message; None if it has not accepted it."""
    refused: bool = False
    seen_at: list[float] = field(default_factory=list)


class Glance(NamedTuple):
    """A message of a ranked topic, as a user saw it."""

    number: int
    rank: float


@dataclass(slots=True)
class Exactly:
    """The counts of messages that must arrive exactly once and in order."""

    sent: int = 0
    accepted: int = 0
    refused: int = 0
    uncertain: int = 0
    """The number of messages for which the publisher got no answer: the gateway may have accepted
    them or not."""
    delivered: int = 0
    missing: int = 0
    """The number of accepted messages that were not seen so far."""
    duplicated: int = 0
    misordered: int = 0
    foreign: int = 0
    """The number of messages that were seen but never sent."""

    @property
    def good(self) -> bool:
        """Whether, according to the ledger, no promise was broken."""
        return not (self.duplicated or self.misordered or self.foreign)


@dataclass(slots=True)
class Looks:
    """Counts of the messages that users saw when they looked at ranked topics."""

    looks: int = 0
    shown: int = 0
    again: int = 0
    """The number of messages that were shown a second time."""
    unsorted: int = 0
    """The number of looks whose messages were not ordered by rank."""
    too_many: int = 0
    too_low: int = 0

    @property
    def good(self) -> bool:
        return not (self.again or self.unsorted or self.too_many or self.too_low)


class DemoLedger:
    """Records what was sent and seen, and compares the two."""

    def __init__(self) -> None:
        self._lanes: dict[LedgerLane, dict[int, LedgerEntry]] = {}
        self._highest: dict[LedgerLane, int] = {}
        self._misordered = 0
        self._foreign = 0
        self._known: set[tuple[str, str, int]] = set()
        self.looks = Looks()
        self.delivered = 0
        """The number of messages of lanes that were seen at least once."""
        self.shown: Counter[str] = Counter()
        """The number of messages of ranked topics that were seen, by device."""

    # Publishers.

    def sending(self, lane: LedgerLane, at: float) -> int:
        """Record that a message is about to be sent; return its number."""
        entries = self._lanes.setdefault(lane, {})
        number = len(entries) + 1
        entries[number] = LedgerEntry(at)
        return number

    def accepted(self, lane: LedgerLane, number: int, message: str) -> None:
        """Record that the gateway has accepted a message, under this id."""
        self._lanes[lane][number].accepted = message

    def refused(self, lane: LedgerLane, number: int) -> None:
        """Record that the gateway has refused a message."""
        self._lanes[lane][number].refused = True

    # Applications.

    def saw(self, lane: LedgerLane, number: int, at: float) -> None:
        """Record that an application got a message."""
        entry = self._lanes.get(lane, {}).get(number)
        if entry is None:
            self._foreign += 1
            return
        if not entry.seen_at:
            self.delivered += 1
            highest = self._highest.get(lane, 0)
            self._misordered += number < highest
            self._highest[lane] = max(highest, number)
        entry.seen_at.append(at)

    def looked(
        self, device: str, topic: str, glances: Sequence[Glance], *, most: int, threshold: float
    ) -> None:
        """Record that a user has looked at a topic, and saw these messages in this order."""
        looks = self.looks
        looks.looks += 1
        looks.shown += len(glances)
        self.shown[device] += len(glances)
        looks.too_many += len(glances) > most
        ranks = [glance.rank for glance in glances]
        looks.unsorted += ranks != sorted(ranks, reverse=True)
        for glance in glances:
            key = (device, topic, glance.number)
            looks.again += key in self._known
            self._known.add(key)
            looks.too_low += glance.rank < threshold

    def copy(self) -> DemoLedger:
        """Return a copy of the ledger, for a reader while others still write."""
        return deepcopy(self)

    # Comparison.

    def verdict(self) -> Exactly:
        """Return the counts of all lanes together."""
        found = Exactly(misordered=self._misordered, foreign=self._foreign)
        for entry in self._entries():
            found.sent += 1
            found.accepted += entry.accepted is not None
            found.refused += entry.refused
            found.uncertain += entry.accepted is None and not entry.refused
            found.delivered += bool(entry.seen_at)
            found.missing += entry.accepted is not None and not entry.seen_at
            found.duplicated += max(0, len(entry.seen_at) - 1)
        return found

    def missing(self) -> list[tuple[LedgerLane, str]]:
        """Return the messages that were accepted and not seen, by lane and id."""
        return [
            (lane, entry.accepted)
            for lane, entries in self._lanes.items()
            for entry in entries.values()
            if entry.accepted is not None and not entry.seen_at
        ]

    def latencies(self) -> Iterator[tuple[str, float]]:
        """Yield for every seen message the device, and the seconds from the publisher's call until
        the application had the message."""
        for lane, entries in self._lanes.items():
            for entry in entries.values():
                if entry.seen_at:
                    yield lane.device, entry.seen_at[0] - entry.sent_at

    def _entries(self) -> Iterator[LedgerEntry]:
        for entries in self._lanes.values():
            yield from entries.values()
