"""Rank decides, also through the hop: what a read delivers is what a sort over everything says.

About `simulation/ranked.py` and `core/ranked/`.
"""

from __future__ import annotations

import os

import pytest

from tests.simulation.ranked_bench import RankedBench, watched

TRACES = int(os.environ.get("RANKED_TRACES", "250"))
"""`make nightly` plays more."""


@pytest.mark.timeout(120 + TRACES // 2)
def test_a_read_over_bad_links_and_crashes_delivers_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0
    for seed in range(TRACES):
        with monkeypatch.context() as patch:
            try:
                looks += watched(RankedBench(seed), patch).play()
            except Exception as error:
                error.add_note(f"trace {seed}")
                raise
    assert looks > 2 * TRACES
