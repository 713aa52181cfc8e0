"""The same inputs give the same effects: from the beginning, and from a snapshot on."""

from __future__ import annotations

import pickle

import pytest

from lasthop.clock import Micros
from lasthop.decision.policies import POLICIES
from lasthop.decision.volume.effects import Effect
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import Arrived, ContactDown, ContactUp, Input, RankChanged, Read
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.trace import draw

WORLD = Parameters(years=0.1, outage=0.5, expiration=24, rank_drop=0.2, storage=20)


def log() -> list[tuple[Micros, Input]]:
    """What a gateway would have logged of some weeks."""
    inputs: list[tuple[Micros, Input]] = []
    up = False
    for now, _, given in draw(WORLD).moments:
        if isinstance(given, Arrived | RankChanged | ContactDown):
            up = up and not isinstance(given, ContactDown)
            inputs.append((now, given))
        elif up:
            inputs.append((now, Read(4)))
        else:
            up = True
            inputs.append((now, ContactUp()))
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

    half = len(inputs) // 2
    original = feed()
    replay(original, inputs[:half])
    snapshot = pickle.loads(pickle.dumps(original))
    assert replay(snapshot, inputs[half:]) == decided[half:]
    assert replay(original, inputs[half:]) == decided[half:]
