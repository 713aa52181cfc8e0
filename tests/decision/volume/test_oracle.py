"""Rank decides: reads, catch-ups and evictions are those of a sort over everything.

About `decision/volume/feed.py` and `decision/volume/ranking.py`.
"""

from __future__ import annotations

import os
from random import Random

from tests.decision.volume.oracle import Bench

STEPS = 60

TRACES = int(os.environ.get("VOLUME_TRACES", "2000"))
"""`make nightly` has twelve thousand."""


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


def test_reads_catch_ups_and_evictions_agree_with_brute_force_under_expiry_and_new_ranks() -> None:
    assert rehearse(range(TRACES)) > 2 * TRACES
