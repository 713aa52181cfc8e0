"""Monitoring: a stream across a change of links, advice, a question and a report."""

from __future__ import annotations

import pytest

from examples.monitoring.__main__ import PULSES, scenario
from examples.monitoring.centre import HIGHEST_PULSE


@pytest.mark.timeout(120)
async def test_the_centre_misses_no_reading_while_links_change() -> None:
    said: list[str] = []
    shift = await scenario(said.append)
    assert shift.readings == list(enumerate(PULSES))
    first = next(number for number, pulse in enumerate(PULSES) if pulse > HIGHEST_PULSE)
    assert shift.alarms == [first]
    assert shift.advice == ["sit down, and drink something"]
    assert shift.measured == "128/84"
    assert shift.reports == ["a little dizzy, better now"]
    assert len(said) == 4
