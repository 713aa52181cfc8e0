"""One timer for all links."""

from __future__ import annotations

from lasthop.clock import SECOND, Micros
from lasthop.transport.alarms import Alarms
from tests.transport.hand import HandClock


class Sleeper:
    def __init__(self, clock: HandClock, after: float) -> None:
        self.slot = 0
        self.due: Micros | None = clock.now() + round(after * SECOND)
        self.woken: list[Micros] = []
        self._clock = clock

    def next_timeout(self) -> Micros | None:
        return self.due

    def timeout(self) -> None:
        self.woken.append(self._clock.now())
        self.due = None


def test_a_sleeper_is_woken_within_a_second_of_its_time() -> None:
    clock = HandClock()
    alarms = Alarms(clock, clock.call_later)
    sleeper = Sleeper(clock, 3.2)
    start = clock.now()
    alarms.set(sleeper)
    clock.advance(3.1)
    assert sleeper.woken == []
    clock.advance(10)
    assert sleeper.woken == [start + 4 * SECOND]


def test_a_thousand_sleepers_share_one_timer() -> None:
    clock = HandClock()
    alarms = Alarms(clock, clock.call_later)
    sleepers = [Sleeper(clock, 10 + index / 100) for index in range(1000)]
    for sleeper in sleepers:
        alarms.set(sleeper)
    assert clock.set_timers == 1
    clock.advance(30)
    assert all(len(sleeper.woken) == 1 for sleeper in sleepers)
    assert clock.set_timers == 0


def test_a_sleeper_that_puts_itself_off_is_not_woken_early() -> None:
    clock = HandClock()
    alarms = Alarms(clock, clock.call_later)
    sleeper = Sleeper(clock, 2)
    alarms.set(sleeper)
    sleeper.due = clock.now() + 50 * SECOND
    clock.advance(49)
    assert sleeper.woken == []
    clock.advance(3)
    assert len(sleeper.woken) == 1


def test_a_sleeper_that_is_put_off_does_not_hold_up_the_others() -> None:
    clock = HandClock()
    alarms = Alarms(clock, clock.call_later)
    busy, idle = Sleeper(clock, 2), Sleeper(clock, 4)
    alarms.set(busy)
    alarms.set(idle)
    busy.due = clock.now() + 50 * SECOND
    clock.advance(6)
    assert len(idle.woken) == 1


def test_an_earlier_sleeper_moves_the_timer() -> None:
    clock = HandClock()
    alarms = Alarms(clock, clock.call_later)
    late, early = Sleeper(clock, 20), Sleeper(clock, 2)
    alarms.set(late)
    alarms.set(early)
    assert clock.set_timers == 1
    clock.advance(4)
    assert (len(early.woken), len(late.woken)) == (1, 0)


def test_a_forgotten_sleeper_is_not_woken() -> None:
    clock = HandClock()
    alarms = Alarms(clock, clock.call_later)
    sleeper = Sleeper(clock, 2)
    alarms.set(sleeper)
    alarms.forget(sleeper)
    alarms.forget(sleeper)
    clock.advance(10)
    assert sleeper.woken == []


def test_a_sleeper_that_wants_nothing_is_not_kept() -> None:
    clock = HandClock()
    alarms = Alarms(clock, clock.call_later)
    sleeper = Sleeper(clock, 2)
    sleeper.due = None
    alarms.set(sleeper)
    assert clock.set_timers == 0


def test_a_sleeper_far_off_is_woken_in_time_all_the_same() -> None:
    clock = HandClock()
    alarms = Alarms(clock, clock.call_later)
    sleeper = Sleeper(clock, 3600)
    start = clock.now()
    alarms.set(sleeper)
    clock.advance(4000)
    assert sleeper.woken == [start + 3601 * SECOND]


def test_closed_alarms_wake_nobody() -> None:
    clock = HandClock()
    alarms = Alarms(clock, clock.call_later)
    sleeper = Sleeper(clock, 2)
    alarms.set(sleeper)
    alarms.close()
    clock.advance(10)
    assert sleeper.woken == []
    assert clock.set_timers == 0
