"""The device's side of a feed: unread events, best first, and what the gateway has yet to hear.

The gateway decides while there is contact. Without it the user reads the best of what is here, and
the next contact reports that.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice

from lasthop.clock import Micros
from lasthop.decision.volume.effects import Forward, Rerank, Retract, Show
from lasthop.decision.volume.entry import NEVER, SWEEP, Entry, Ranking
from lasthop.decision.volume.inputs import ContactUp, Held, OfflineRead, Read

NOTHING_NEW = ContactUp()


class DeviceQueue:
    """One topic on one device."""

    def __init__(self, *, max_per_read: int | None = None) -> None:
        self._max = max_per_read
        self._unread: dict[int, Entry] = {}
        self._ranking = Ranking()
        self._expiries: list[tuple[Micros, int, Entry]] = []
        self._order = 0
        self._reads: list[OfflineRead] = []

    def __len__(self) -> int:
        return len(self._unread)

    def forward(self, effect: Forward, *, rank: float, expires_at: Micros | None) -> None:
        """An event has come in; the gateway says who makes room for it."""
        if effect.instead_of is not None:
            self._forget(effect.instead_of)
        self._order += 1
        entry = Entry(effect.key, rank, expires_at or NEVER, self._order, 0)
        self._unread[effect.key] = entry
        self._ranking.push(entry)
        if expires_at is not None:
            expiries = self._expiries
            if len(expiries) > 2 * len(self._unread) + SWEEP:
                expiries[:] = [row for row in expiries if self._unread.get(row[2].key) is row[2]]
                heapify(expiries)
            heappush(expiries, (expires_at, self._order, entry))

    def show(self, effect: Show) -> tuple[int, ...]:
        """The user sees these now."""
        for key in effect.keys:
            self._forget(key)
        return effect.keys

    def retract(self, effect: Retract) -> None:
        """An event is gone, as if it had never come."""
        self._forget(effect.key)

    def rerank(self, effect: Rerank) -> None:
        """An event is worth more or less than it was."""
        entry = self._unread.get(effect.key)
        if entry is not None:
            entry.rank = effect.rank
            entry.version += 1
            self._ranking.push(entry)

    def ask(self, wanted: int | None, now: Micros) -> Read:
        """What to ask the gateway when the user looks and there is contact."""
        best = self._best(wanted, now)
        for entry in best:
            self._ranking.push(entry)
        events = tuple(
            Held(e.key, e.rank, None if e.expires_at == NEVER else e.expires_at) for e in best
        )
        return Read(wanted, len(self._unread), events)

    def read_offline(self, wanted: int | None, now: Micros) -> tuple[int, ...]:
        """Show the user the best of what is here."""
        keys = tuple(entry.key for entry in self._best(wanted, now))
        for key in keys:
            self._forget(key)
        self._reads.append(OfflineRead(now, wanted, keys))
        return keys

    def contact(self) -> ContactUp:
        """There is contact again: what the gateway could not see."""
        if not self._reads:
            return NOTHING_NEW
        reads, self._reads = tuple(self._reads), []
        return ContactUp(reads)

    def _best(self, wanted: int | None, now: Micros) -> list[Entry]:
        self._expire(now)
        limit = self._max if wanted is None or (self._max or wanted) < wanted else wanted
        return list(islice(iter(self._ranking.pop, None), limit))

    def _expire(self, now: Micros) -> None:
        expiries = self._expiries
        while expiries and expiries[0][0] <= now:
            entry = heappop(expiries)[2]
            if self._unread.get(entry.key) is entry:
                self._forget(entry.key)

    def _forget(self, key: int) -> None:
        entry = self._unread.pop(key, None)
        if entry is not None:
            entry.version += 1
