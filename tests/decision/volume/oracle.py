"""A feed's promises by brute force: sort everything, every time, and compare."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from lasthop.clock import Micros
from lasthop.decision.policies import POLICIES, Tuning
from lasthop.decision.reasons import OUTRANKED
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import DropEvent, Effect, Forward, Rerank, Retract, Show
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import (
    Arrived,
    ContactDown,
    EventWithdrawn,
    Input,
    RankChanged,
    Woken,
)
from lasthop.decision.volume.subscription import Mode, Subscription

FOREVER: Micros = 1 << 60


@dataclass
class Truth:
    """One event as it is, whatever anybody knows of it."""

    key: int
    rank: float
    expires_at: Micros


class Bench:
    """A feed, a device and the truth about both."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.subscription = Subscription(
            mode=random.choice([Mode.ON_DEMAND, Mode.ON_DEMAND, Mode.ON_LINE]),
            max=random.choice([None, 1, 2, 3, 5]),
            threshold=random.choice([0.0, 3.0]),
            interrupt=random.choice([None, None, 9.0]),
            retention=random.choice([None, 4, 8, 12]),
            storage=random.choice([None, 2, 4, 8]),
        )
        tuning = Tuning(
            max=self.subscription.max,
            prefetch_limit=random.choice([None, 1, 3, 6]),
            expiration_threshold=random.choice([None, 5, 20]),
        )
        self.feed = Feed(self.subscription, POLICIES[random.choice(list(POLICIES))](tuning))
        self.device = DeviceQueue(max_per_read=self.subscription.max)
        self.now: Micros = 0
        self.alive: dict[int, Truth] = {}
        """Not read, evicted or withdrawn; by arrival."""
        self.there: dict[int, Truth] = {}
        """On the device, as the device knows it, in the order of arrival there."""
        self.linked = False
        self.last_key = 0
        self.reads = 0

    def step(self) -> None:
        """Let something happen."""
        moment = self.now + self.random.choice([0, 1, 1, 2, 5, 10])
        while (wake := self.feed.next_wake()) is not None and wake <= moment:
            self.now = wake
            self._expire()
            self._take(Woken(), wake)
        self.now = moment
        self._expire()
        self.random.choices(
            [self._arrive, self._rerank, self._withdraw, self._switch, self._read],
            [10, 4, 1, 3, 3],
        )[0]()
        if self.subscription.storage is not None:
            assert len(self.there) <= self.subscription.storage
        if self.subscription.retention is not None:
            assert len(self.alive.keys() - self.there.keys()) <= self.subscription.retention

    def _rank(self) -> float:
        return float(self.random.randrange(11))  # Few values, so that there are ties.

    def _arrive(self) -> None:
        self.last_key += 1
        expires_at = self.random.choice([None, self.now + self.random.randrange(1, 60)])
        event = Truth(self.last_key, self._rank(), FOREVER if expires_at is None else expires_at)
        self.alive[event.key] = event
        self._take(Arrived(event.key, event.rank, expires_at), self.now)

    def _rerank(self) -> None:
        if self.last_key:
            key = self.random.randrange(1, self.last_key + 1)
            rank = self._rank()
            if key in self.alive:
                self.alive[key].rank = rank
            self._take(RankChanged(key, rank), self.now)

    def _withdraw(self) -> None:
        if self.alive:
            key = self.random.choice(list(self.alive))
            del self.alive[key]
            self._take(EventWithdrawn(key), self.now)

    def _switch(self) -> None:
        self.linked = not self.linked
        if not self.linked:
            self._take(ContactDown(), self.now)
            return
        catch_up = self.subscription.mode is Mode.ON_LINE
        effects = self._take(self.device.contact(), self.now)
        if catch_up and self.subscription.interrupt is None:
            shown = [key for e in effects if isinstance(e, Show) for key in e.keys]
            assert shown == self.expected_shown

    def _best(self, limit: int | None) -> list[int]:
        order = {key: place for place, key in enumerate(self.alive)}
        able = [e for e in self.alive.values() if e.rank >= self.subscription.threshold]
        able.sort(key=lambda e: (-e.rank, order[e.key]))
        return [e.key for e in able[:limit]]

    def _read(self) -> None:
        wanted = self.random.choice([None, 1, 2, 4])
        limits = [n for n in (wanted, self.subscription.max) if n is not None]
        limit = min(limits) if limits else None
        if not self.linked:
            best = sorted(self.there.values(), key=lambda e: -e.rank)[:limit]
            keys = self.device.read_offline(wanted, self.now)
            assert keys == tuple(copy.key for copy in best)
            for key in keys:
                self.alive.pop(key, None)
                del self.there[key]
            return
        self.reads += 1
        expected = self._best(limit)
        missing = set(expected) - self.there.keys()
        effects = self._take(self.device.ask(wanted, self.now), self.now)
        asked = {e.key for e in effects if isinstance(e, Forward) and e.reason.startswith("asked")}
        shows = [e for e in effects if isinstance(e, Show)]
        assert [key for show in shows for key in show.keys] == expected
        assert asked == missing

    def _take(self, given: Input, now: Micros) -> list[Effect]:
        self.expected_shown = self._best(self.subscription.max)
        effects = self.feed.take(given, now)
        for effect in effects:
            self._do(effect)
        return effects

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Forward):
            assert self.linked
            assert effect.key not in self.there, "forwarded twice"
            event = self.alive[effect.key]
            assert event.expires_at > self.now
            assert event.rank >= self.subscription.threshold
            self.there[effect.key] = replace(event)
            if effect.instead_of is not None:
                del self.there[effect.instead_of]
            expires_at = None if event.expires_at == FOREVER else event.expires_at
            self.device.forward(effect, rank=event.rank, expires_at=expires_at)
        elif isinstance(effect, Show):
            for key in self.device.show(effect):
                del self.alive[key]
                del self.there[key]
        elif isinstance(effect, Retract):
            assert self.linked
            self.there.pop(effect.key, None)
            self.device.retract(effect)
        elif isinstance(effect, Rerank):
            assert effect.rank == self.alive[effect.key].rank
            self.there[effect.key].rank = effect.rank
            self.device.rerank(effect)
        elif isinstance(effect, DropEvent) and effect.reason == OUTRANKED:
            assert effect.key == self._victim()
            del self.alive[effect.key]

    def _victim(self) -> int:
        """Who a quota has to evict: the lowest of those that enough others outrank and outlive."""
        order = {key: place for place, key in enumerate(self.alive)}
        here = [event for key, event in self.alive.items() if key not in self.there]
        here.sort(key=lambda e: (e.rank, e.expires_at, -order[e.key]))
        enough = self.subscription.max
        for place, event in enumerate(here):
            better = [e for e in here[place + 1 :] if e.expires_at >= event.expires_at]
            if event.rank < self.subscription.threshold:
                return event.key
            if enough is not None and len(better) >= enough:
                return event.key
        return here[0].key

    def _expire(self) -> None:
        for events in (self.alive, self.there):
            for key in [key for key, event in events.items() if event.expires_at <= self.now]:
                del events[key]
