"""Things to do later."""

from __future__ import annotations

from lasthop.core.timers import Timers


def test_items_come_by_time_and_then_in_the_order_they_were_added() -> None:
    timers: Timers[str] = Timers()
    for due, item in [(5, "b"), (3, "a"), (5, "c"), (9, "d")]:
        timers.add(due, item)
    assert timers.next_due() == 3
    assert timers.due(2) == []
    assert timers.due(5) == ["a", "b", "c"]
    assert len(timers) == 1
    assert timers.due(9) == ["d"]
    assert timers.next_due() is None
