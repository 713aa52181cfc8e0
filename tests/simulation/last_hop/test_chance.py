"""Our distributions give what the standard library's give for the same stream."""

from __future__ import annotations

from random import Random

import pytest

from lasthop.simulation.last_hop.chance import Normal, exponential, gamma


def test_the_exponential_one() -> None:
    ours, theirs = Random(7), Random(7)
    assert [exponential(ours.random) for _ in range(2000)] == [
        theirs.expovariate(1.0) for _ in range(2000)
    ]


@pytest.mark.parametrize("shape", [0.05, 0.25, 1 / 2.25, 0.99, 1.0, 1.5, 4.0])
def test_the_gamma_one(shape: float) -> None:
    ours, theirs = Random(7), Random(7)
    assert [gamma(ours, shape, 1 / shape) for _ in range(2000)] == [
        theirs.gammavariate(shape, 1 / shape) for _ in range(2000)
    ]


def test_the_normal_one() -> None:
    ours, theirs = Normal(Random(7).random), Random(7)
    assert [ours.draw(n, 2.5) for n in range(2001)] == [theirs.gauss(n, 2.5) for n in range(2001)]
