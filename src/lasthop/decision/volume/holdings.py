"""Where every event of a feed is, at the gateway or on the device, and the best event of each
place.

This module only moves events; the feed decides why and when.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from lasthop.clock import Micros
from lasthop.decision.volume.entry import NEVER, FeedEntry, Place, better, new_entry
from lasthop.decision.volume.memory import EntryState
from lasthop.decision.volume.quota import Quota
from lasthop.decision.volume.ranking import SWEEP, Deadlines, Ranking
from lasthop.decision.volume.subscription import Subscription

HISTORY: Final = 4096
"""The number of ended events that are still recognised, at least, so that a late change of rank or
a repeated arrival does not bring them back."""

TOO_LONG: Final = 2 * HISTORY
PREFETCH: Final = Place.PREFETCH.value
HOLDING: Final = Place.HOLDING.value
BELOW: Final = Place.BELOW.value
DEVICE: Final = Place.DEVICE.value
ENDED: Final = Place.ENDED.value


TO_GO: Final = 1
HELD: Final = 2
THERE: Final = 3
"""The values of `Ranked.home` for the three rankings of a feed."""


class Holdings:
    """The events of one feed, by place and rank."""

    def __init__(self, subscription: Subscription) -> None:
        s = subscription
        self.entries: dict[int, FeedEntry] = {}
        """All events that are not over, by key."""
        self.on_device = 0
        """How many of the entries are on the device."""
        self.over: dict[int, bool] = {}
        """Events that have ended, oldest first; for each, whether it was shown unasked and could be
        retracted."""
        self.newest = 0
        """The highest key so far: an event with a higher key is new."""
        # An event that a read can find counts in one of these three rankings.
        self.prefetch: Ranking[FeedEntry] = Ranking(TO_GO)
        """Events at the gateway that may be sent ahead of a read."""
        self._held: Ranking[FeedEntry] = Ranking(HELD)
        """Events at the gateway that only a read sends."""
        self._unread: Ranking[FeedEntry] = Ranking(THERE)
        """Unread events that are on the device."""
        self._strays = 0
        """How many events have left a ranking since the rankings were last swept."""
        self.expiries: Deadlines[FeedEntry] = Deadlines()
        """Events in the order of their expiration; it may still contain events that the feed has
        dropped."""
        self.moved: dict[int, FeedEntry] | None = None
        """Events that have changed since the last call of `Feed.moved`; None for a feed that is not
        stored."""
        self.retention: Quota | None = None
        self.storage: Quota | None = None
        if s.retention is not None:
            self.retention = Quota(s.retention, enough=s.max, threshold=s.threshold)
        if s.storage is not None:
            self.storage = Quota(s.storage, enough=s.max, threshold=s.threshold)

    def add(self, key: int, rank: float, expires_at: Micros, now: Micros) -> FeedEntry:
        """Add a new event, which is in no ranking yet."""
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

    def to_hold(self, entry: FeedEntry, reason: str, place: str = HOLDING) -> None:
        """Move the event to those that only a read sends."""
        entry.place = place
        entry.reason = reason
        self._held.push(entry)
        if self.moved is not None:
            self.moved[entry.key] = entry

    def to_prefetch(self, entry: FeedEntry, reason: str) -> None:
        """Move the event to those that a read or a prefetch sends."""
        entry.place = PREFETCH
        entry.reason = reason
        entry.home = TO_GO
        self.prefetch.new.append(entry)
        if self.moved is not None:
            self.moved[entry.key] = entry

    def to_device(self, entry: FeedEntry, reason: str) -> None:
        """Move the event to the device, after it was forwarded."""
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

    def to_gateway(self, entry: FeedEntry, *, counts: bool, reason: str) -> None:
        """Move the event back to the gateway, because the device no longer holds it."""
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

    def rerank(self, entry: FeedEntry, rank: float, *, counts: bool) -> FeedEntry:
        """Give the event a new rank in its present place, if it still counts there; return the
        object that stands for the event from now on."""
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

    def best(self) -> FeedEntry | None:
        """Return the best event that counts, at the gateway or on the device; None if there is
        none."""
        best = self._unread.peek()
        if self.prefetch.new or self.prefetch.size:
            best = better(best, self.prefetch.peek())
        if self._held.new or self._held.size:
            best = better(best, self._held.peek())
        return best

    def held_by_device(self, key: int) -> FeedEntry | None:
        """Return the event with this key if it is on the device, else None."""
        entry = self.entries.get(key)
        return entry if entry is not None and entry.place == DEVICE else None

    def leaves_for(self, entry: FeedEntry) -> FeedEntry | None:
        """Return the event that must leave a full device to make room for this event, which may be
        this event itself if it is the worst."""
        if self.storage is None:
            return None
        self.storage.add(entry)
        evicted = self.storage.victim()
        self.storage.discard(entry)
        return evicted

    def end(self, entry: FeedEntry, unasked: bool = False) -> None:
        """End an event: it was read, expired, evicted or withdrawn."""
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
            # A stored feed knows from its store which events are over, so it need not remember them
            # here.
            self.moved[key] = entry
            return
        self.over[key] = unasked
        if len(self.over) >= TOO_LONG:  # Many at once: finding the oldest takes a search.
            for oldest in list(islice(self.over, HISTORY)):
                del self.over[oldest]

    def _moved_on(self) -> None:
        """Count an event that has left its ranking, and sweep the rankings when there are many."""
        self._strays += 1
        if self._strays > 2 * len(self.entries) + SWEEP:
            self._sweep()

    def _sweep(self) -> None:
        self._strays = 0
        for ranking in (self.prefetch, self._held, self._unread):
            ranking.sweep()

    def resize_storage(self, limit: int | None, subscription: Subscription) -> None:
        """Change how many unread events the device has room for; None: any number."""
        self.storage = None
        if limit is not None:
            self.storage = Quota(limit, enough=subscription.max, threshold=subscription.threshold)
            for entry in self.entries.values():
                if entry.place == DEVICE:
                    self.storage.add(entry)

    def readmit(self, state: EntryState) -> FeedEntry:
        """Put a stored event back into its place after a restart."""
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
        """Forget that an event is over: it is still unread on the device."""
        self.over.pop(key, None)

    def next_expired(self, now: Micros) -> FeedEntry | None:
        """Return an event that has expired and is not over yet; None if there is none."""
        while (entry := self.expiries.take(now)) is not None:
            if entry.place != ENDED:
                return entry
        return None
