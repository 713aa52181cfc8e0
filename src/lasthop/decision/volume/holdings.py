"""Where every event of a feed is, at the gateway or on the device, and the best of each place.

Moves only; why and when is the feed's to decide.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from lasthop.clock import Micros
from lasthop.decision.volume.entry import NEVER, Entry, Place, better, new_entry
from lasthop.decision.volume.memory import EntryState
from lasthop.decision.volume.quota import Quota
from lasthop.decision.volume.ranking import SWEEP, Deadlines, Ranking
from lasthop.decision.volume.subscription import Subscription

HISTORY: Final = 4096
"""Events that are over and still recognised, at least, so that a late change of rank or a repeated
arrival does not bring them back."""

TOO_LONG: Final = 2 * HISTORY
PREFETCH: Final = Place.PREFETCH.value
HOLDING: Final = Place.HOLDING.value
BELOW: Final = Place.BELOW.value
DEVICE: Final = Place.DEVICE.value
ENDED: Final = Place.ENDED.value


TO_GO: Final = 1
HELD: Final = 2
THERE: Final = 3
"""The numbers of the three rankings."""


class Holdings:
    """The events of one feed."""

    def __init__(self, subscription: Subscription) -> None:
        s = subscription
        self.entries: dict[int, Entry] = {}
        """Everything that is not over, by key."""
        self.on_device = 0
        """How many of them the device has."""
        self.over: dict[int, bool] = {}
        """Events of the past, oldest first, and whether they were shown unasked."""
        self.newest = 0
        """The highest key so far: what is above it was never here."""
        # What a read finds counts in one of these three.
        self.prefetch: Ranking[Entry] = Ranking(TO_GO)
        """At the gateway, and may go ahead of a read."""
        self._held: Ranking[Entry] = Ranking(HELD)
        """At the gateway, for reads only."""
        self._unread: Ranking[Entry] = Ranking(THERE)
        """On the device."""
        self._strays = 0
        """How many have moved on since the rankings were swept."""
        self.expiries: Deadlines[Entry] = Deadlines()
        """Some may be over."""
        self.moved: dict[int, Entry] | None = None
        """What has changed since somebody last looked; only for a feed that is kept in a store."""
        self.retention: Quota | None = None
        self.storage: Quota | None = None
        if s.retention is not None:
            self.retention = Quota(s.retention, enough=s.max, threshold=s.threshold)
        if s.storage is not None:
            self.storage = Quota(s.storage, enough=s.max, threshold=s.threshold)

    def add(self, key: int, rank: float, expires_at: Micros, now: Micros) -> Entry:
        """A new event; it is nowhere yet."""
        entry = self.entries[key] = new_entry(key, rank, expires_at, now)
        if entry.order > self.newest:  # noqa: PLR1730 for every event: without a call
            self.newest = entry.order
        if expires_at != NEVER:
            self.expiries.push(entry, self.entries)
        if self.retention is not None:
            self.retention.add(entry)
        if self.moved is not None:
            self.moved[key] = entry
        return entry

    def to_hold(self, entry: Entry, reason: str, place: str = HOLDING) -> None:
        """Available to reads from now on."""
        entry.place = place
        entry.reason = reason
        self._held.push(entry)
        if self.moved is not None:
            self.moved[entry.key] = entry

    def to_prefetch(self, entry: Entry, reason: str) -> None:
        """Available to reads, and may also go ahead of one."""
        entry.place = PREFETCH
        entry.reason = reason
        entry.home = TO_GO
        self.prefetch.new.append(entry)
        if self.moved is not None:
            self.moved[entry.key] = entry

    def to_device(self, entry: Entry, reason: str) -> None:
        """It has been forwarded."""
        if self.retention is not None:
            self.retention.discard(entry)
        if self.storage is not None:
            self.storage.add(entry)
        entry.place = DEVICE
        entry.reason = reason
        self.on_device += 1
        entry.home = THERE
        self._unread.new.append(entry)
        if self.moved is not None:
            self.moved[entry.key] = entry

    def to_gateway(self, entry: Entry, *, counts: bool, reason: str) -> None:
        """The device no longer has it; the gateway still does."""
        self.on_device -= 1
        if self.storage is not None:
            self.storage.discard(entry)
        if self.retention is not None:
            self.retention.add(entry)
        entry.home = 0
        self._moved_on()
        entry.place = BELOW
        entry.reason = reason
        if self.moved is not None:
            self.moved[entry.key] = entry
        if counts:
            self.to_hold(entry, reason)

    def rerank(self, entry: Entry, rank: float, *, counts: bool) -> Entry:
        """Sort it in by its new rank where it is, if it still counts there; from now on, the one
        that this returns stands for the event."""
        quota = self.storage if entry.place == DEVICE else self.retention
        if quota is not None:
            quota.discard(entry)
        entry = self.entries[entry.key] = entry.reranked(rank)
        self._moved_on()
        if entry.expires_at != NEVER:
            self.expiries.push(entry, self.entries)
        if self.moved is not None:
            self.moved[entry.key] = entry
        if quota is not None:
            quota.add(entry)
        if counts and entry.place != BELOW:
            if entry.place == DEVICE:
                self._unread.push(entry)
            elif entry.place == PREFETCH:
                self.prefetch.push(entry)
            else:
                self._held.push(entry)
        return entry

    def best(self) -> Entry | None:
        """The best of all that counts, wherever it is."""
        best = self._unread.peek()
        if self.prefetch.new or self.prefetch.size:
            best = better(best, self.prefetch.peek())
        if self._held.new or self._held.size:
            best = better(best, self._held.peek())
        return best

    def held_by_device(self, key: int) -> Entry | None:
        """The event of this key, if the device has it."""
        entry = self.entries.get(key)
        return entry if entry is not None and entry.place == DEVICE else None

    def leaves_for(self, entry: Entry) -> Entry | None:
        """Who makes room on a full device for this event; itself if it is the worst."""
        if self.storage is None:
            return None
        self.storage.add(entry)
        evicted = self.storage.victim()
        self.storage.discard(entry)
        return evicted

    def end(self, entry: Entry, unasked: bool = False) -> None:
        """An event is over: read, expired, evicted or withdrawn."""
        key = entry.key
        del self.entries[key]
        if entry.place == DEVICE:
            self.on_device -= 1
            if self.storage is not None:
                self.storage.discard(entry)
        elif self.retention is not None:
            self.retention.discard(entry)
        entry.home = 0
        entry.place = ENDED
        self._strays += 1
        if self._strays > 2 * len(self.entries) + SWEEP:
            self._sweep()
        if self.moved is not None:
            # Whoever keeps it in a store knows what is over, and asks about nothing that is.
            self.moved[key] = entry
            return
        self.over[key] = unasked
        if len(self.over) >= TOO_LONG:  # Many at once: to find the oldest takes a search.
            for oldest in list(islice(self.over, HISTORY)):
                del self.over[oldest]

    def _moved_on(self) -> None:
        """Something in a ranking counts no longer where it is."""
        self._strays += 1
        if self._strays > 2 * len(self.entries) + SWEEP:
            self._sweep()

    def _sweep(self) -> None:
        self._strays = 0
        for ranking in (self.prefetch, self._held, self._unread):
            ranking.sweep()

    def resize_storage(self, limit: int | None, subscription: Subscription) -> None:
        """The device has room for another number of unread events."""
        self.storage = None
        if limit is not None:
            self.storage = Quota(limit, enough=subscription.max, threshold=subscription.threshold)
            for entry in self.entries.values():
                if entry.place == DEVICE:
                    self.storage.add(entry)

    def readmit(self, state: EntryState) -> Entry:
        """Put an event back where it was before a restart."""
        expires_at = NEVER if state.expires_at is None else state.expires_at
        entry = self.add(state.key, state.rank, expires_at, state.arrived_at)
        place = state.place
        if place is Place.PREFETCH:
            self.to_prefetch(entry, "")
        elif place is Place.DEVICE:
            self.to_device(entry, "")
        elif place is not Place.BELOW:
            self.to_hold(entry, "", place.value)
            entry.due = state.due
        return entry

    def revive(self, key: int) -> None:
        """It was taken for over, and is not."""
        self.over.pop(key, None)

    def next_expired(self, now: Micros) -> Entry | None:
        """One of those whose time has come."""
        while (entry := self.expiries.take(now)) is not None:
            if entry.place != ENDED:
                return entry
        return None
