"""Every target understands its seeds, and withstands what becomes of them when bytes change."""

from random import Random

import pytest

from tests.fuzz.targets import TARGETS, check


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_works(name: str) -> None:
    target = TARGETS[name]
    seeds = list(target.seeds())
    understood = [seed for seed in seeds if check(target, seed)]
    assert understood
    random = Random(name)
    for _ in range(150):
        seed = bytearray(random.choice(understood))
        for _ in range(random.choice((1, 1, 2, 8))):
            at = random.randrange(len(seed) + 1)
            match random.randrange(4):
                case 0:
                    seed[at : at + 1] = bytes((random.randrange(256),))
                case 1:
                    del seed[at : at + random.randrange(1, 9)]
                case 2:
                    seed[at:at] = seed[at : at + random.randrange(1, 30)]
                case _:
                    seed[at:at] = random.choice(seeds)[: random.randrange(1, 30)]
        check(target, bytes(seed))
