"""What `lasthop bench stream` makes of what it hears.

About `bench/pipeline/follow.py`.
"""

from __future__ import annotations

import pytest

from bench.pipeline.follow import Heard, waits

SECOND = 1_000_000


def test_an_event_has_waited_until_the_first_line_that_counts_it() -> None:
    times = [0, 1 * SECOND, 2 * SECOND, 8 * SECOND]
    heard = [Heard(2, 0.0, at=5.0), Heard(2, 0.0, at=7.0), Heard(3, 0.0, at=9.0)]
    # The fourth is in no table yet.
    assert waits(times, heard) == pytest.approx([5.0, 4.0, 7.0])
    assert waits(times, []) == []
