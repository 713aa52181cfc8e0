"""`bench/event_append.py`: what an event costs where it is made."""

from __future__ import annotations

import pytest

from bench.event_append import MakeEvent, accepted, measure, released, transmitted


@pytest.mark.parametrize("make_event", [released, transmitted, accepted])
def test_several_commits_are_measured(make_event: MakeEvent) -> None:
    result = measure(make_event, 1500)
    assert 100 < result.size < 1000
    assert 0 < result.encoding < result.ours
    assert 0 < result.best <= result.ours
