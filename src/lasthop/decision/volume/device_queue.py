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

Row: TypeAlias = tuple[float, int, int, int, Micros | None]
"""Rank (negative, so that the best sorts first), order of arrival, serial number, key, expiry."""


class DeviceQueue:
    """One topic on one device."""

    def __init__(self, *, max_per_read: int | None = None) -> None:
        self._max = max_per_read
        self._unread: dict[int, Row] = {}
        self._ranking: list[Row] = []
        """A heap; what has not the number of the key's present row is skipped when it comes up."""
        self._aside: list[Row] = []
        """What the last question named is not on the heap: most of it is about to be shown."""
        self._sweep_at = SWEEP
        self._expiries: list[tuple[Micros, int]] = []
        self._serial = 0
        self._reads: list[OfflineRead] = []

    def __len__(self) -> int:
        return len(self._unread)

    def forward(self, effect: Forward, *, rank: float, expires_at: Micros | None) -> None:
        """An event has come in; the gateway says who makes room for it."""
        if effect.instead_of is not None:
            self._unread.pop(effect.instead_of, None)
        self._serial += 1
        key, ranking = effect.key, self._ranking
        row = self._unread[key] = (-rank, self._serial, self._serial, key, expires_at)
        heappush(ranking, row)
        if len(ranking) > self._sweep_at:
            self._sweep()
        if expires_at is not None:
            if len(self._expiries) > 2 * len(self._unread) + SWEEP:
                live = [(row[4], key) for key, row in self._unread.items() if row[4] is not None]
                self._expiries = sorted(live)
            heappush(self._expiries, (expires_at, effect.key))

    def limit(self, max_per_read: int | None) -> None:
        """Show at most so many in one read from now on."""
        self._max = max_per_read

    def all(self) -> list[Held]:
        """Everything that is unread, in no particular order."""
        return [Held(row[3], -row[0], row[4]) for row in self._unread.values()]

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
            self._serial += 1
            row = self._unread[effect.key] = (-effect.rank, row[1], self._serial, row[3], row[4])
            heappush(self._ranking, row)
            if len(self._ranking) > self._sweep_at:
                self._sweep()

    def ask(self, wanted: int | None, now: Micros) -> Read:
        """What to ask the gateway when the user looks and there is contact."""
        best = self._aside = self._take_best(wanted, now)
        events = tuple([Held(row[3], -row[0], row[4]) for row in best])
        return Read(wanted, len(self._unread), events)

    def read_offline(self, wanted: int | None, now: Micros) -> tuple[int, ...]:
        """Show the user the best of what is here."""
        keys = tuple([row[3] for row in self._take_best(wanted, now)])
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

    def _sweep(self) -> None:
        """Leave out what is out of date, if that is most of the heap."""
        if 2 * len(self._unread) < len(self._ranking):
            self._ranking = list(self._unread.values())
            self._aside = []
            heapify(self._ranking)
        self._sweep_at = 2 * len(self._ranking) + SWEEP

    def _take_best(self, wanted: int | None, now: Micros) -> list[Row]:
        """The best rows, off the heap."""
        expiries, unread, ranking = self._expiries, self._unread, self._ranking
        while expiries and expiries[0][0] <= now:
            expires_at, key = heappop(expiries)
            present = unread.get(key)
            if present is not None and present[4] == expires_at:
                del unread[key]
        for row in self._aside:
            if self._is_present(row):
                heappush(ranking, row)
        self._aside = []
        limit = self._max if wanted is None or (self._max or wanted) < wanted else wanted
        best: list[Row] = []
        while ranking and (limit is None or len(best) < limit):
            row = heappop(ranking)
            if self._is_present(row):
                best.append(row)
        return best

    def _is_present(self, row: Row) -> bool:
        present = self._unread.get(row[3])
        return present is not None and present[2] == row[2]
