"""What a ranking gives is what sorting everything would give, however events come and go."""

from __future__ import annotations

from bisect import bisect_left
from random import Random

import pytest
from hypothesis import given, strategies as st

from lasthop.decision.volume import ranking as module
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import Rerank
from lasthop.decision.volume.entry import NEVER, Ranked, new_ranked
from lasthop.decision.volume.holdings import Holdings
from lasthop.decision.volume.ranking import SWEEP, Deadlines, Ranking, position
from lasthop.decision.volume.subscription import Subscription

HOME, ELSEWHERE = 1, 2


def best_first(events: dict[int, Ranked]) -> list[int]:
    return [e.key for e in sorted(events.values(), key=lambda e: (-e.rank, e.order))]


def rows(ranking: Ranking[Ranked]) -> int:
    return len(ranking.new) + ranking.size


class Bench:
    """A ranking, another one that events move to, and what both should hold."""

    def __init__(self, random: Random, ranks: int) -> None:
        self.random = random
        self.ranks = ranks
        """How many different ones there are."""
        self.ranking: Ranking[Ranked] = Ranking(HOME)
        self.other: Ranking[Ranked] = Ranking(ELSEWHERE)
        self.here: dict[int, Ranked] = {}
        self.there: dict[int, Ranked] = {}
        self.key = 0

    def push(self) -> None:
        self.key += 1
        # Mostly the later it comes the higher its order, but not always.
        order = self.key if self.random.random() < 0.9 else -self.key
        event = new_ranked(self.key, self.random.randrange(self.ranks) / 7, NEVER, order)
        self.here[event.key] = event
        self.ranking.push(event)

    def leave(self) -> None:
        """One is over, wherever it ranks."""
        if self.here:
            self.here.pop(self.random.choice(list(self.here))).home = 0

    def move(self) -> None:
        """One goes to the other ranking; one of those comes back."""
        for source, target, ranking in (
            (self.here, self.there, self.other),
            (self.there, self.here, self.ranking),
        ):
            if source:
                event = source.pop(self.random.choice(list(source)))
                target[event.key] = event
                ranking.push(event)

    def peek(self) -> None:
        best = self.ranking.peek()
        assert (None if best is None else best.key) == next(iter(best_first(self.here)), None)

    def take(self) -> None:
        best = self.ranking.take()
        assert (None if best is None else best.key) == next(iter(best_first(self.here)), None)
        if best is not None:
            assert best.home == 0
            del self.here[best.key]

    def take_all(self) -> None:
        assert [event.key for event in self.ranking.take_all()] == best_first(self.here)
        assert rows(self.ranking) == 0
        self.here = {}

    def sweep(self) -> None:
        self.ranking.sweep()
        assert rows(self.ranking) == len(self.here)


@pytest.mark.parametrize("short", [2, 128])
@pytest.mark.parametrize("seed", range(60))
def test_the_best_is_that_of_all_that_are_here(
    seed: int, short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if module.__file__.endswith(".py"):
        monkeypatch.setattr(module, "SHORT", short)
    elif short != 128:
        pytest.skip("a constant is compiled in")
    random = Random(seed)
    bench = Bench(random, random.choice([1, 3, 1000]))
    often = random.choice([(10, 1, 1, 3, 3), (5, 2, 2, 1, 6), (10, 6, 2, 0.3, 0.3)])
    steps = (bench.push, bench.leave, bench.move, bench.peek, bench.take)
    seldom = (bench.take_all, bench.sweep)
    for _ in range(600):
        random.choices((*steps, *seldom), (*often, 0.02, 0.1))[0]()
        assert len(bench.here) <= rows(bench.ranking)
    while bench.here:
        bench.take()
    assert bench.ranking.take() is None


def test_what_has_moved_on_does_not_pile_up_at_the_gateway() -> None:
    holdings = Holdings(Subscription())
    for key in range(1, 11):
        holdings.to_device(holdings.add(key, 0.5, NEVER, 0), "")
    rankings = (holdings.prefetch, holdings._held, holdings._unread)
    for key in range(11, 5000):
        entry = holdings.add(key, key % 7, NEVER, 0)
        (holdings.to_device, holdings.to_prefetch, holdings.to_hold)[key % 3](entry, "")
        if key % 3 == 0:
            holdings.to_gateway(entry, counts=True, reason="")
        holdings.end(holdings.rerank(entry, 0.1, counts=True))
        if key % 100 == 0:
            best = holdings.best()
            assert best is not None
            assert best.key == 1
        assert sum(len(ranking.new) + ranking.size for ranking in rankings) <= 30 + 2 * SWEEP


def test_what_has_moved_on_does_not_pile_up_on_the_device() -> None:
    device = DeviceQueue()
    for key in range(1, 11):
        device.add(key, 0.5, NEVER)
    for key in range(11, 5000):
        device.add(key, key % 7, NEVER)
        if key % 3:
            device.rerank(Rerank(key, 0.1))
        device.forget(key)
        assert len(device._ranking.new) + device._ranking.size <= 30 + 2 * SWEEP
    assert device.read_offline(3, 0) == (1, 2, 3)


def test_what_comes_and_goes_is_here_once() -> None:
    one: Ranking[Ranked] = Ranking(HOME)
    other: Ranking[Ranked] = Ranking(ELSEWHERE)
    event = new_ranked(1, 0.5, NEVER, 1)
    for _ in range(1000):
        one.push(event)
        one.peek()
        other.push(event)
    one.push(event)
    assert one.take_all() == [event]
    assert one.take() is None
    assert other.take() is None


@given(st.lists(st.integers(0, 60)), st.booleans())
def test_who_expires_first_comes_first(moments: list[int], swept: bool) -> None:
    deadlines: Deadlines[Ranked] = Deadlines()
    live: dict[int, Ranked] = {}
    for key, expires_at in enumerate(moments):
        live[key] = new_ranked(key, 0.0, expires_at, key)
        deadlines.push(live[key], live)
    over: dict[int, Ranked] = {}
    if swept:  # Of very many only those stay that are not over.
        for key in range(1000, 1300):
            over[key] = new_ranked(key, 0.0, 30, key)
            deadlines.push(over[key], live)
    assert deadlines.due() <= min(moments, default=NEVER)
    for now in range(0, 70, 5):
        due: list[int] = []
        while (event := deadlines.take(now)) is not None:
            due.append(event.key)
        expected = [e.key for e in sorted(live.values(), key=lambda e: (e.expires_at, e.order))]
        assert [key for key in due if key in live] == [
            key for key in expected if now - 5 < live[key].expires_at <= now
        ]
    assert deadlines.due() == NEVER


@given(st.lists(st.integers(-50, 50)).map(sorted), st.integers(-60, 60))
def test_our_own_search_finds_what_the_library_finds(numbers: list[int], number: int) -> None:
    at = bisect_left(numbers, number)
    ranked = [new_ranked(n, n / 7, NEVER, n) for n in numbers]
    assert position(ranked, number / 7, by_rank=True) == at
    expiring = [new_ranked(n, 0.0, -n, n) for n in numbers]
    assert position(expiring, float(number), by_rank=False) == at
