"""The same inputs give the same effects: from the beginning, and from a snapshot on.

About `decision/volume/feed.py` and `decision/volume/memory.py`.
"""

from __future__ import annotations

import pickle

import msgspec
import pytest

from lasthop.clock import Micros
from lasthop.decision.policies import POLICIES, Policy
from lasthop.decision.policies.memory import memory_of, recall
from lasthop.decision.volume import feed as feed_module
from lasthop.decision.volume.effects import Effect
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import Arrived, ContactDown, ContactUp, Input, RankChanged, Read
from lasthop.decision.volume.memory import EntryState, FeedState
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.trace import draw

WORLD = Parameters(years=0.1, outage=0.5, expiration=24, rank_drop=0.2, storage=20)


def log() -> list[tuple[Micros, Input]]:
    """What a gateway would have logged of some weeks."""
    inputs: list[tuple[Micros, Input]] = []
    up = False
    for now, _, given in draw(WORLD).inputs():
        if isinstance(given, Arrived | RankChanged | ContactDown):
            up = up and not isinstance(given, ContactDown)
            inputs.append((now, given))
        elif isinstance(given, ContactUp):
            up = True
            inputs.append((now, given))
        elif up:
            inputs.append((now, Read(4)))
    return inputs


def replay(feed: Feed, inputs: list[tuple[Micros, Input]]) -> list[list[Effect]]:
    return [feed.take(given, now) for now, given in inputs]


@pytest.mark.parametrize("name", POLICIES)
def test_a_logged_history_is_decided_in_the_same_way_again(name: str) -> None:
    def feed() -> Feed:
        return Feed(WORLD.subscription(), POLICIES[name](WORLD.tuning()))

    inputs = log()
    decided = replay(feed(), inputs)
    assert replay(feed(), inputs) == decided

    if not feed_module.__file__.endswith(".py"):
        return  # Compiled objects cannot be pickled; those from a store are tested below.
    half = len(inputs) // 2
    original = feed()
    replay(original, inputs[:half])
    snapshot = pickle.loads(pickle.dumps(original))
    assert replay(snapshot, inputs[half:]) == decided[half:]
    assert replay(original, inputs[half:]) == decided[half:]


@pytest.mark.parametrize("name", POLICIES)
def test_a_feed_from_a_store_decides_as_the_one_that_was_lost(name: str) -> None:
    def feed() -> tuple[Feed, Policy]:
        policy = POLICIES[name](WORLD.tuning())
        return Feed(WORLD.subscription(), policy), policy

    inputs = log()
    half = next(n for n, (_, given) in enumerate(inputs) if n > 200 and given == ContactUp())
    original, policy = feed()
    original.track()
    kept: dict[int, EntryState | None] = {}
    for now, given in inputs[:half]:
        original.take(given, now)
        for key in original.moved():
            kept[key] = original.entry(key)
    original.take(ContactDown(), inputs[half][0])

    heir, fresh = feed()
    recall(fresh, msgspec.json.decode(msgspec.json.encode(memory_of(policy))))
    state = msgspec.json.decode(msgspec.json.encode(original.state()), type=FeedState)
    heir.resume(state, [s for _, s in sorted(kept.items()) if s is not None])
    assert memory_of(fresh) == memory_of(policy)
    assert replay(heir, inputs[half:]) == replay(original, inputs[half:])
