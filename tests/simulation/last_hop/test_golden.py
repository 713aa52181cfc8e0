"""What a seed gives stays what it gave: faster code must tell the same story.

About `simulation/last_hop/run.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from lasthop.decision.policies import POLICIES
from lasthop.simulation.last_hop.parameters import Distribution, Parameters
from lasthop.simulation.last_hop.run import run

GOLDEN = Path(__file__).with_name("golden.json")
"""Written by `python -m tests.simulation.last_hop.test_golden`, when a change is meant."""

WORLDS = {
    "overflow": Parameters(outage=0.5),
    "busy reader": Parameters(outage=0.9, user_frequency=8, max=3, threshold=0.3),
    "expiring": Parameters(outage=0.9, max=None, expiration=4.2),
    "some expire": Parameters(
        outage=0.7,
        expiration=24,
        expiring_portion=0.5,
        expiration_distribution=Distribution.NORMAL,
    ),
    "small device": Parameters(
        outage=0.3,
        storage=12,
        expiration=48,
        expiration_distribution=Distribution.UNIFORM,
    ),
    "falling ranks": Parameters(outage=0.5, rank_drop=0.2, outage_deviation=0.5, max=4),
    "steady outages": Parameters(outage=0.95, outage_deviation=0.0, event_frequency=100),
}


def outcome(world: str, policy: str) -> list[int]:
    p = replace(WORLDS[world], policy=policy, years=0.15, prefetch_limit=10, seed=len(world))
    o = run(replace(p, expiration_threshold=3.0, price=2.0))
    return [o.lost, o.wasted, o.forwarded, o.read_online, o.read_policy, o.events]


@pytest.mark.parametrize("world", WORLDS)
def test_a_seed_gives_what_it_gave(world: str) -> None:
    golden = json.loads(GOLDEN.read_text())[world]
    assert {policy: outcome(world, policy) for policy in POLICIES} == golden


def write() -> None:
    table: dict[str, dict[str, list[int]]] = {world: {} for world in WORLDS}
    for world, policy in product(WORLDS, POLICIES):
        table[world][policy] = outcome(world, policy)
    lines = [
        f'  "{world}": {{\n'
        + ",\n".join(f'    "{name}": {json.dumps(row)}' for name, row in rows.items())
        + "\n  }"
        for world, rows in table.items()
    ]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
