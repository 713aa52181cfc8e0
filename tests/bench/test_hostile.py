"""A little of everything that nobody should send.

About `bench/soak/hostile.py`.
"""

from __future__ import annotations

import io
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from bench.soak.hostile import MOST_GROWTH, attack, mutated


def test_a_mutation_repeats_with_its_seed_and_changes_something() -> None:
    data = bytes(range(100))
    assert mutated(Random(1), data) == mutated(Random(1), data) != data


@pytest.mark.slow
def test_every_attack_is_survived(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    result = attack(tmp_path, frame_count=1500, request_count=50, seed=1, console=console)
    assert list(result.attacks) == ["headers", "slow_clients", "bombs", "requests", "frames"]
    assert result.attacks["frames"].sent >= 1500
    assert result.growth_mb <= MOST_GROWTH
    assert result.health_failed == 0
