"""Virtual time passes only from one planned action to the next."""

from __future__ import annotations

from lasthop.clock import SECOND
from lasthop.simulation.kernel import START, Kernel


def test_actions_run_in_order_of_time_and_then_of_planning() -> None:
    kernel = Kernel()
    seen: list[str] = []
    kernel.after(2, lambda: seen.append("later"))
    kernel.after(1, lambda: seen.append("first"))
    kernel.after(1, lambda: seen.append("second"))
    kernel.run(until=lambda: False, limit=SECOND)
    assert seen == ["first", "second", "later"]
    assert kernel.now() == START + 2


def test_what_should_have_happened_happens_now() -> None:
    kernel = Kernel()
    kernel.at(START - SECOND, lambda: None)
    kernel.run(until=lambda: False, limit=SECOND)
    assert kernel.now() == START


def test_running_ends_when_it_is_told_to_or_time_is_up() -> None:
    kernel = Kernel()
    kernel.after(5, lambda: None)
    assert kernel.run(until=lambda: kernel.now() == START + 5, limit=SECOND)
    kernel.after(2 * SECOND, lambda: None)
    assert not kernel.run(until=lambda: False, limit=SECOND)
