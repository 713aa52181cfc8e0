"""Rank decides: reads, catch-ups and evictions are those of a sort over everything."""

from __future__ import annotations

from random import Random

import pytest

from tests.decision.volume.oracle import Bench

STEPS = 60


def rehearse(seeds: range) -> int:
    reads = 0
    for seed in seeds:
        bench = Bench(Random(seed))
        try:
            for _ in range(STEPS):
                bench.step()
        except Exception as error:
            error.add_note(f"trace {seed}")
            raise
        reads += bench.reads
    return reads


def test_a_read_shows_what_a_sort_over_everything_shows() -> None:
    assert rehearse(range(2_000)) > 4_000


@pytest.mark.slow
def test_ten_thousand_traces_with_expiry_rank_changes_and_evictions_agree_with_brute_force() -> (
    None
):
    assert rehearse(range(2_000, 12_000)) > 20_000
