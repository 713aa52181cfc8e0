"""What a user missed, as far as a gateway can see it: the live loss of one feed.

The gateway knows what it has kept back, and the device tells which events its user saw without
contact. An event was *missed* in such a look if it was at the gateway although the device could
have had it (it came before the device's last contact ended), was alive, and was among the best that
the user wanted, beside what the user saw. It is *lost* if it then ends unread; if the user reads it
later, it was only late. The live loss is `lost / (read + lost)`.

This is the loss that a rehearsal measures against the on-line policy, judged look by look: what the
user would have done after seeing other events is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lasthop.clock import Micros
from lasthop.decision.reasons import NO_ROOM
from lasthop.decision.volume.effects import DropEvent, Effect, Forward, Retract, Show
from lasthop.decision.volume.entry import NEVER, Place
from lasthop.decision.volume.inputs import (
    Arrived,
    ContactDown,
    ContactUp,
    EventWithdrawn,
    Gone,
    Input,
    Lost,
    OfflineRead,
    RankChanged,
    Unread,
)
from lasthop.decision.volume.memory import EntryState

MOST = 1024
"""The largest number of events of a feed that are watched: a look compares all of them, and nobody
reads so many. Of more, the first ones are watched."""


class _Watched:
    """An event of the feed that has not ended."""

    __slots__ = ("arrived_at", "expires_at", "here", "missed", "rank")

    def __init__(self, rank: float, arrived_at: Micros, expires_at: Micros, *, here: bool) -> None:
        self.rank = rank
        self.arrived_at = arrived_at
        self.expires_at = expires_at
        self.here = here
        """Whether the event is at the gateway; otherwise it is on the device."""
        self.missed = False


class LossWatch:
    """Watches one feed from the side: told of its inputs and effects, it decides nothing."""

    def __init__(self, entries: Iterable[EntryState], *, threshold: float) -> None:
        """`entries` are the events that the feed has when the watch begins."""
        self.read = 0
        self.lost = 0
        self._threshold = threshold
        self._parted: Micros | None = None
        """When the device's last contact ended; None: not since the watch began, so that nothing
        can be said about a look without contact."""
        self._events: dict[int, _Watched] = {}
        for entry in entries:
            if entry.place is not Place.BELOW:
                here = entry.place is not Place.DEVICE
                self._keep(entry.key, entry.rank, entry.expires_at, entry.arrived_at, here=here)

    def take(self, given: Input, effects: Sequence[Effect], now: Micros) -> None:
        """Note an input of the feed and what the feed has done about it."""
        if isinstance(given, Arrived):
            self._arrived(given, now)
        elif isinstance(given, ContactDown):
            self._settle(now)
            self._parted = now
        elif isinstance(given, ContactUp):
            for look in given.reads:
                self._looked(look)
            self._return(given.lost)
        elif isinstance(given, OfflineRead):
            self._looked(given)
        elif isinstance(given, RankChanged):
            self._reranked(given)
        elif isinstance(given, EventWithdrawn):
            self._events.pop(given.key, None)
        elif isinstance(given, Lost):
            self._return(given.keys)
        elif isinstance(given, Unread):
            for held in given.events:
                self._keep(held.key, held.rank, held.expires_at, now, here=False)
        elif isinstance(given, Gone):
            for key in given.keys:
                self._end(key)
        for effect in effects:
            self._follow(effect, now)

    def _arrived(self, given: Arrived, now: Micros) -> None:
        if given.key not in self._events and given.rank >= self._threshold:
            self._keep(given.key, given.rank, given.expires_at, now, here=True)

    def _keep(
        self, key: int, rank: float, expires_at: Micros | None, arrived_at: Micros, *, here: bool
    ) -> None:
        if len(self._events) < MOST:
            until = NEVER if expires_at is None else expires_at
            self._events[key] = _Watched(rank, arrived_at, until, here=here)

    def _reranked(self, given: RankChanged) -> None:
        event = self._events.get(given.key)
        if event is None:
            return
        event.rank = given.rank
        if given.rank < self._threshold:
            del self._events[given.key]

    def _follow(self, effect: Effect, now: Micros) -> None:
        if isinstance(effect, Forward):
            self._move((effect.key,), here=False)
            if effect.instead_of is not None:
                self._move((effect.instead_of,), here=True)
        elif isinstance(effect, Show):
            self._read(effect.keys)
        elif isinstance(effect, Retract) and effect.reason == NO_ROOM:
            self._move((effect.key,), here=True)
        elif isinstance(effect, DropEvent) and effect.key in self._events:
            event = self._events[effect.key]
            event.expires_at = min(event.expires_at, now)

    def _return(self, keys: Iterable[int]) -> None:
        self._move(keys, here=True)

    def _move(self, keys: Iterable[int], *, here: bool) -> None:
        for key in keys:
            event = self._events.get(key)
            if event is not None:
                event.here = here

    def _looked(self, look: OfflineRead) -> None:
        """Note a look without contact: what was seen, and what could have been seen instead."""
        events, parted = self._events, self._parted
        if parted is not None and look.at >= parted:
            candidates = [
                (event.rank, key)
                for key, event in events.items()
                if event.here and event.arrived_at <= parted and look.at < event.expires_at
            ]
            shown = [(events[key].rank, 0) for key in look.keys if key in events]
            best = sorted(candidates + shown, reverse=True)
            for _, key in best[: len(best) if look.wanted is None else look.wanted]:
                if key:
                    events[key].missed = True
        self._read(look.keys)

    def _read(self, keys: Iterable[int]) -> None:
        for key in keys:
            self._events.pop(key, None)
            self.read += 1

    def _end(self, key: int) -> None:
        event = self._events.pop(key, None)
        if event is not None and event.missed:
            self.lost += 1

    def _settle(self, now: Micros) -> None:
        """End what has expired. This waits for the end of a contact, since the device tells only in
        the contact after a look what its user saw; what was dropped meanwhile is still known."""
        expired = [key for key, event in self._events.items() if event.expires_at <= now]
        for key in expired:
            self._end(key)
