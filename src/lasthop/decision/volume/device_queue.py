"""The device's side of a feed: unread events, best first, and what the gateway has yet to hear.

The gateway decides while there is contact. Without it the user reads the best of what is here, and
the next contact reports that.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TypeAlias

from lasthop.clock import Micros
from lasthop.decision.volume.effects import Forward, Rerank, Retract, Show
from lasthop.decision.volume.entry import SWEEP
from lasthop.decision.volume.inputs import ContactUp, Held, OfflineRead, Read

NOTHING_NEW = ContactUp()

Row: TypeAlias = tuple[float, int, int, Micros | None]
"""Rank (negative, so that the best sorts first), order of arrival, key, expiry."""


class DeviceQueue:
    """One topic on one device."""

    def __init__(self, *, max_per_read: int | None = None) -> None:
        self._max = max_per_read
        self._unread: dict[int, Row] = {}
        self._ranking: list[Row] = []
        """A heap; what is not the key's present row is skipped when it comes up."""
        self._expiries: list[tuple[Micros, int]] = []
        self._order = 0
        self._reads: list[OfflineRead] = []

    def __len__(self) -> int:
        return len(self._unread)

    def forward(self, effect: Forward, *, rank: float, expires_at: Micros | None) -> None:
        """An event has come in; the gateway says who makes room for it."""
        if effect.instead_of is not None:
            self._unread.pop(effect.instead_of, None)
        self._order += 1
        self._enter((-rank, self._order, effect.key, expires_at))
        if expires_at is not None:
            if len(self._expiries) > 2 * len(self._unread) + SWEEP:
                live = [(row[3], key) for key, row in self._unread.items() if row[3] is not None]
                self._expiries = sorted(live)
            heappush(self._expiries, (expires_at, effect.key))

    def show(self, effect: Show) -> tuple[int, ...]:
        """The user sees these now."""
        for key in effect.keys:
            self._unread.pop(key, None)
        return effect.keys

    def retract(self, effect: Retract) -> None:
        """An event is gone, as if it had never come."""
        self._unread.pop(effect.key, None)

    def rerank(self, effect: Rerank) -> None:
        """An event is worth more or less than it was."""
        row = self._unread.get(effect.key)
        if row is not None:
            self._enter((-effect.rank, *row[1:]))

    def ask(self, wanted: int | None, now: Micros) -> Read:
        """What to ask the gateway when the user looks and there is contact."""
        best = self._take_best(wanted, now)
        for row in best:
            heappush(self._ranking, row)
        events = tuple(Held(key, -rank, expires_at) for rank, _, key, expires_at in best)
        return Read(wanted, len(self._unread), events)

    def read_offline(self, wanted: int | None, now: Micros) -> tuple[int, ...]:
        """Show the user the best of what is here."""
        keys = tuple(row[2] for row in self._take_best(wanted, now))
        for key in keys:
            del self._unread[key]
        self._reads.append(OfflineRead(now, wanted, keys))
        return keys

    def contact(self) -> ContactUp:
        """There is contact again: what the gateway could not see."""
        if not self._reads:
            return NOTHING_NEW
        reads, self._reads = tuple(self._reads), []
        return ContactUp(reads)

    def _enter(self, row: Row) -> None:
        self._unread[row[2]] = row
        if len(self._ranking) > 2 * len(self._unread) + SWEEP:
            self._ranking = list(self._unread.values())
            heapify(self._ranking)
        else:
            heappush(self._ranking, row)

    def _take_best(self, wanted: int | None, now: Micros) -> list[Row]:
        """The best rows, off the heap."""
        expiries = self._expiries
        while expiries and expiries[0][0] <= now:
            expires_at, key = heappop(expiries)
            row = self._unread.get(key)
            if row is not None and row[3] == expires_at:
                del self._unread[key]
        limit = self._max if wanted is None or (self._max or wanted) < wanted else wanted
        best: list[Row] = []
        while self._ranking and (limit is None or len(best) < limit):
            row = heappop(self._ranking)
            if self._unread.get(row[2]) is row:
                best.append(row)
        return best
