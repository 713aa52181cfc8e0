"""The device's side of a feed: unread events, best first, and reads that are yet to be reported.

The gateway decides while there is contact. Without contact the user reads the best of what the
device holds, and the next contact reports that read.
"""

from __future__ import annotations

from typing import Final

from lasthop.clock import Micros
from lasthop.decision.volume.effects import Forward, Rerank, Retract, Show
from lasthop.decision.volume.entry import NEVER, Ranked, new_ranked
from lasthop.decision.volume.inputs import NOTHING_NEW, ContactUp, Held, OfflineRead, Read
from lasthop.decision.volume.ranking import SWEEP, Deadlines, Ranking

HERE: Final = 1
"""The value of `Ranked.home` for the only ranking that a device has."""


class DeviceQueue:
    """The unread events of one topic on one device, best first."""

    def __init__(self, *, max_per_read: int | None = None) -> None:
        self._max = max_per_read
        self._unread: dict[int, Ranked] = {}
        self._ranking: Ranking[Ranked] = Ranking(HERE)
        self._aside: list[Ranked] = []
        """Events that the last question named: they are not in the ranking, since most are about to
        be shown."""
        self._expiries: Deadlines[Ranked] = Deadlines()
        """Unread events by expiration; some of them may have left the queue already."""
        self._strays = 0
        """How many events have left the queue since the ranking was last swept."""
        self.received = 0
        """How many events have come in so far."""
        self.reads: list[OfflineRead] = []
        """Reads without contact that the gateway has yet to be told of."""

    def __len__(self) -> int:
        return len(self._unread)

    def forward(self, effect: Forward, *, rank: float, expires_at: Micros | None) -> None:
        """Add an event that came in, and remove the event that it replaces, if the gateway named
        one."""
        if effect.instead_of is not None:
            self.forget(effect.instead_of)
        self.add(effect.key, rank, NEVER if expires_at is None else expires_at)

    def add(self, key: int, rank: float, expires_at: Micros) -> None:
        """Add an event that came in; it replaces an unread one with the same key."""
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
        """Remove an event from the queue, if it is there."""
        event = self._unread.pop(key, None)
        if event is not None:
            event.home = 0
            self._strays += 1
            if self._strays > 2 * len(self._unread) + SWEEP:
                self._strays = 0
                self._ranking.sweep()

    def limit(self, max_per_read: int | None) -> None:
        """Change the largest number of events that one read shows; None: all."""
        self._max = max_per_read

    def all(self) -> list[Held]:
        """Return every unread event, in no particular order."""
        return [held(event) for event in self._unread.values()]

    def show(self, effect: Show) -> tuple[int, ...]:
        """Remove events that are shown to the user now; return their keys, best first."""
        for key in effect.keys:
            self.forget(key)
        return effect.keys

    def retract(self, effect: Retract) -> None:
        """Remove an event that the gateway has retracted."""
        self.forget(effect.key)

    def rerank(self, effect: Rerank) -> None:
        """Give an unread event another rank."""
        key, unread = effect.key, self._unread
        before = unread.get(key)
        if before is not None:
            self.forget(key)
            event = unread[key] = new_ranked(key, effect.rank, before.expires_at, before.order)
            self._ranking.push(event)
            if event.expires_at != NEVER:
                self._expiries.push(event, unread)

    def count(self, now: Micros) -> int:
        """Return how many unread events have not expired."""
        self._expire(now)
        return len(self._unread)

    def ask(self, wanted: int | None, now: Micros) -> Read:
        """Return what to ask the gateway when the user looks and there is contact."""
        best = self._aside = self._take_best(wanted, now)
        return Read(wanted, len(self._unread), tuple([held(event) for event in best]))

    def read_offline(self, wanted: int | None, now: Micros) -> tuple[int, ...]:
        """Remove the best events and note the read, when the user looks without contact; return
        their keys."""
        keys: list[int] = []
        for event in self._take_best(wanted, now):
            keys.append(event.key)
            del self._unread[event.key]
        shown = tuple(keys)
        self.reads.append(OfflineRead(now, wanted, shown))
        return shown

    def contact(self) -> ContactUp:
        """Return what to report to the gateway at a new contact, and forget it here."""
        if not self.reads:
            return NOTHING_NEW
        reads, self.reads = tuple(self.reads), []
        return ContactUp(reads)

    def _expire(self, now: Micros) -> None:
        while (expired := self._expiries.take(now)) is not None:
            if self._unread.get(expired.key) is expired:
                self.forget(expired.key)

    def _take_best(self, wanted: int | None, now: Micros) -> list[Ranked]:
        """Take the best events out of the ranking; they stay unread until they are shown."""
        self._expire(now)
        unread, ranking = self._unread, self._ranking
        for event in self._aside:
            if unread.get(event.key) is event:
                ranking.push(event)
        self._aside = []
        limit = self._max if wanted is None or (self._max or wanted) < wanted else wanted
        return ranking.take_some(limit)


def held(event: Ranked) -> Held:
    """Return an event in the form in which the device reports it to the gateway."""
    expires_at = None if event.expires_at == NEVER else event.expires_at
    return Held(event.key, event.rank, expires_at)
