"""Devices that can afford little, over links that last long enough to spend it, and a gateway that
keeps dying: no limit is broken, and nothing is lost or overtaken for it.

About `simulation/faults.py` and `core/preferences/`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.core.delivery import Delivery
from lasthop.core.feature import order_of
from lasthop.core.preferences.device_preferences import DevicePreferences
from lasthop.core.preferences.scheduler import PreferenceScheduler
from lasthop.core.session import Session
from lasthop.decision.budgets import Budgets
from lasthop.decision.preferences import Preferences
from lasthop.device.change import BUDGETS
from lasthop.device.preferences.sending_preferences import OpenChannel, SendingPreferences
from lasthop.simulation.disk import MemoryDisk
from lasthop.simulation.faults import Rehearsal
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.link import Weather
from lasthop.simulation.schedule import draw, preferences
from lasthop.simulation.verdict import RehearsalVerdict

SCHEDULES = int(os.environ.get("LASTHOP_BUDGET_SCHEDULES", "20"))
"""`make nightly` asks for three hundred."""

MOST = 400
"""How many schedules a planted bug may survive."""

NEAR = {"repeat_for_nothing": 124, "forget_the_ledger": 183, "send_without_limits": 21}
"""Where to begin, for what only one schedule in a hundred shows."""

Patch = pytest.MonkeyPatch


class Calm(Rehearsal):
    """Links of fair weather: quick, reliable, and there for a minute or so."""

    def _weather(self) -> tuple[Weather, Interconnect]:
        lives = self._random.randint(5 * SECOND, 90 * SECOND)
        return Weather(delay=MILLISECOND // 10, lives=lives), Interconnect.STREAM


def run(seed: int) -> RehearsalVerdict:
    schedule = draw(seed, messages=60)
    schedule.copy_at = None
    schedule.another = 1.0
    random = Random(seed)
    schedule.plans = {name: preferences(random) for name in schedule.devices}
    schedule.crash_before = {random.randint(5, 60) for _ in range(2)}
    schedule.crash_after = {random.randint(5, 60) for _ in range(2)}
    return Calm(schedule, MemoryDisk()).run().verdict


def faults(schedules: int, first: int = 0) -> list[str]:
    """What is found wrong, until something is."""
    for seed in range(first, first + schedules):
        if problems := run(seed).lines:
            return [f"{seed}: {problem}" for problem in problems]
    return []


def test_budgets_hold_and_nothing_is_lost_for_them(monkeypatch: Patch) -> None:
    counts = {"held": 0, "closed": 0}
    hold, closures = PreferenceScheduler._hold, DevicePreferences.look_for_closures

    def counting_hold(*arguments: Any) -> None:
        counts["held"] += 1
        hold(*arguments)

    def counting_closures(self: DevicePreferences, now: Micros) -> None:
        closures(self, now)
        counts["closed"] += len(self.closures)

    monkeypatch.setattr(PreferenceScheduler, "_hold", counting_hold)
    monkeypatch.setattr(DevicePreferences, "look_for_closures", counting_closures)
    assert faults(SCHEDULES) == []
    # Otherwise this shows nothing.
    assert counts["held"] > SCHEDULES
    assert counts["closed"] > 0


def no_limits(patch: Patch) -> None:
    patch.setattr(Budgets, "refusal", lambda *_, **__: None)
    patch.setattr(Budgets, "closure", lambda *_, **__: None)


def forget_the_ledger(patch: Patch) -> None:
    """Budgets are not written down."""
    patch.setattr(PreferenceScheduler, "note", lambda self: None)


def repeat_for_nothing(patch: Patch) -> None:
    """Only the first transmission of a message is paid for."""
    left = DevicePreferences.left

    def once(self: DevicePreferences, delivery: Delivery, now: Micros) -> int:
        if delivery.attempts > 1:
            self.refund(delivery, now)
            return 0
        return left(self, delivery, now)

    patch.setattr(DevicePreferences, "left", once)


def send_without_limits(patch: Patch) -> None:
    """The device believes that it can afford everything."""
    begin, restore = SendingPreferences.__init__, SendingPreferences.restore.__func__  # type: ignore[attr-defined]

    def rich(self: SendingPreferences, plans: Preferences, lines: dict[int, OpenChannel]) -> None:
        begin(self, replace(plans, limits=()), lines)

    def still_rich(
        cls: type[SendingPreferences], notes: dict[str, bytes], *others: Any
    ) -> SendingPreferences | None:
        found: SendingPreferences | None = restore(cls, {**notes, BUDGETS: b""}, *others)
        return found

    patch.setattr(SendingPreferences, "__init__", rich)
    patch.setattr(SendingPreferences, "restore", classmethod(still_rich))


def overtake_what_is_held(patch: Patch) -> None:
    """A held message holds up nobody, not even its own lane."""
    offer = PreferenceScheduler._offer

    def pump(
        self: PreferenceScheduler, session: Session, mine: DevicePreferences, now: Micros
    ) -> list[Delivery]:
        released: list[Delivery] = []
        if mine.reconsider:
            mine.reconsider = False
            for lane in list(mine.held):
                self._go_on(session, mine, lane, released, now)
        while (delivery := session.best()) is not None and session.has_credit(1):
            session.take_best()
            lane = order_of(delivery.item.message)
            held = mine.held.pop(lane, None)
            offer(self, session, mine, delivery, released, now)
            if held is not None:
                held.queue += mine.held[lane].queue if lane in mine.held else []
                mine.held[lane] = held
        self.settle(session, mine, now)
        return released

    patch.setattr(PreferenceScheduler, "pump", pump)


@pytest.mark.parametrize(
    "plant",
    [
        no_limits,
        forget_the_ledger,
        repeat_for_nothing,
        send_without_limits,
        overtake_what_is_held,
    ],
)
def test_a_planted_bug_is_caught(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    plant(monkeypatch)
    assert faults(MOST, NEAR.get(plant.__name__, 0)), "nobody noticed"
