"""Rehearsals with lanes: at least three are open, some are paused, some have no order."""

from __future__ import annotations

import pytest

from lasthop.simulation.disk import MemoryDisk
from lasthop.simulation.faults import Rehearsal, run
from lasthop.simulation.paused_lanes import add_lanes
from lasthop.simulation.schedule import LOOSE, Schedule, draw


def drawn(seed: int) -> Schedule:
    schedule = draw(seed)
    add_lanes(schedule)
    return schedule


SEEDS = (60008, 60005, 60014, 60019)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_doubled_or_misordered_in_lanes(seed: int) -> None:
    outcome = run(seed, lanes=True)
    assert outcome.verdict.good, outcome.verdict.lines


def test_a_rehearsal_has_lanes_with_order_and_without_and_pauses_some() -> None:
    schedule = drawn(SEEDS[0])
    rehearsal = Rehearsal(schedule, MemoryDisk())
    opened: set[int] = set()
    paused: set[int] = set()
    gateway = rehearsal._gateway
    turn = gateway.turn

    def noting() -> None:
        turn()
        for session in rehearsal._sessions():
            for lane in () if session.lanes is None else session.lanes.out.open.values():
                opened.add(lane.id)
                if lane.limit is not None and not lane.limit.messages:
                    paused.add(lane.id)

    gateway.turn = noting  # type: ignore[method-assign]
    assert rehearsal.run().verdict.good
    assert len(opened) >= 3
    assert paused
    assert any(plan.queue == LOOSE for batch in schedule.batches for plan in batch.plans)
    assert any(lane & 1 for lane in opened)
