"""The device's side of a feed: unread events, best first, and what the gateway has yet to hear.

The gateway decides while there is contact. Without it the user reads the best of what is here, and
the next contact reports that.
"""

from __future__ import annotations

from typing import Final

from lasthop.clock import Micros
from lasthop.decision.volume.effects import Forward, Rerank, Retract, Show
from lasthop.decision.volume.entry import NEVER, Ranked, new_ranked
from lasthop.decision.volume.inputs import NOTHING_NEW, ContactUp, Held, OfflineRead, Read
from lasthop.decision.volume.ranking import SWEEP, Deadlines, Ranking

HERE: Final = 1
"""The number of the ranking."""


class DeviceQueue:
    """One topic on one device."""

    def __init__(self, *, max_per_read: int | None = None) -> None:
        self._max = max_per_read
        self._unread: dict[int, Ranked] = {}
        self._ranking: Ranking[Ranked] = Ranking(HERE)
        self._aside: list[Ranked] = []
        """What the last question named does not count: most of it is about to be shown."""
        self._expiries: Deadlines[Ranked] = Deadlines()
        """Some may be over."""
        self._strays = 0
        """How many have moved on since the ranking was swept."""
        self.received = 0
        """How many have come in so far."""
        self.reads: list[OfflineRead] = []
        """What the gateway has yet to hear of."""

    def __len__(self) -> int:
        return len(self._unread)

    def forward(self, effect: Forward, *, rank: float, expires_at: Micros | None) -> None:
        """An event has come in; the gateway says who makes room for it."""
        if effect.instead_of is not None:
            self.forget(effect.instead_of)
        self.add(effect.key, rank, NEVER if expires_at is None else expires_at)

    def add(self, key: int, rank: float, expires_at: Micros) -> None:
        """An event has come in."""
        unread = self._unread
        self.received = order = self.received + 1
        event = new_ranked(key, rank, expires_at, order)
        if unread.setdefault(key, event) is not event:
            self.forget(key)
            unread[key] = event
        event.home = HERE
        self._ranking.new.append(event)
        if expires_at != NEVER:
            self._expiries.push(event, unread)

    def forget(self, key: int) -> None:
        """An event is no longer here, if it was."""
        event = self._unread.pop(key, None)
        if event is not None:
            event.home = 0
            self._strays += 1
            if self._strays > 2 * len(self._unread) + SWEEP:
                self._strays = 0
                self._ranking.sweep()

    def limit(self, max_per_read: int | None) -> None:
        """Show at most so many in one read from now on."""
        self._max = max_per_read

    def all(self) -> list[Held]:
        """Everything that is unread, in no particular order."""
        return [held(event) for event in self._unread.values()]

    def show(self, effect: Show) -> tuple[int, ...]:
        """The user sees these now."""
        for key in effect.keys:
            self.forget(key)
        return effect.keys

    def retract(self, effect: Retract) -> None:
        """An event is gone, as if it had never come."""
        self.forget(effect.key)

    def rerank(self, effect: Rerank) -> None:
        """An event is worth more or less than it was."""
        key, unread = effect.key, self._unread
        before = unread.get(key)
        if before is not None:
            self.forget(key)
            event = unread[key] = new_ranked(key, effect.rank, before.expires_at, before.order)
            self._ranking.push(event)
            if event.expires_at != NEVER:
                self._expiries.push(event, unread)

    def count(self, now: Micros) -> int:
        """How many are unread."""
        self._expire(now)
        return len(self._unread)

    def ask(self, wanted: int | None, now: Micros) -> Read:
        """What to ask the gateway when the user looks and there is contact."""
        best = self._aside = self._take_best(wanted, now)
        return Read(wanted, len(self._unread), tuple([held(event) for event in best]))

    def read_offline(self, wanted: int | None, now: Micros) -> tuple[int, ...]:
        """Show the user the best of what is here."""
        keys: list[int] = []
        for event in self._take_best(wanted, now):
            keys.append(event.key)
            del self._unread[event.key]
        shown = tuple(keys)
        self.reads.append(OfflineRead(now, wanted, shown))
        return shown

    def contact(self) -> ContactUp:
        """There is contact again: what the gateway could not see."""
        if not self.reads:
            return NOTHING_NEW
        reads, self.reads = tuple(self.reads), []
        return ContactUp(reads)

    def _expire(self, now: Micros) -> None:
        while (expired := self._expiries.take(now)) is not None:
            if self._unread.get(expired.key) is expired:
                self.forget(expired.key)

    def _take_best(self, wanted: int | None, now: Micros) -> list[Ranked]:
        """The best of all, which then do not count."""
        self._expire(now)
        unread, ranking = self._unread, self._ranking
        for event in self._aside:
            if unread.get(event.key) is event:
                ranking.push(event)
        self._aside = []
        limit = self._max if wanted is None or (self._max or wanted) < wanted else wanted
        return ranking.take_some(limit)


def held(event: Ranked) -> Held:
    """As the gateway is told of it."""
    expires_at = None if event.expires_at == NEVER else event.expires_at
    return Held(event.key, event.rank, expires_at)
