"""Schedules of faults: they repeat with their seed, and leave no kind out."""

from __future__ import annotations

from collections import Counter

import pytest

from lasthop.runtime.chaos.fault_schedule import GATEWAY, LENGTHS, FaultKind, draw

PARTIES = ["phone", "tablet", "shop"]
ALL = tuple(FaultKind)


def test_a_seed_repeats_its_schedule_and_another_has_another() -> None:
    first = list(draw(7, 60, PARTIES, ALL))
    assert first == list(draw(7, 60, PARTIES, ALL))
    assert first != list(draw(8, 60, PARTIES, ALL))


@pytest.mark.parametrize("seed", range(20))
def test_eleven_seconds_have_every_kind_and_ten_minutes_sixty_kills(seed: int) -> None:
    assert {fault.kind for fault in draw(seed, 11, PARTIES, ALL)} == set(ALL)
    kinds = Counter(fault.kind for fault in draw(seed, 600, PARTIES, ALL))
    assert kinds[FaultKind.KILL] >= 60


def test_faults_come_in_order_and_last_as_long_as_their_kind_may() -> None:
    faults = list(draw(1, 300, PARTIES, ALL))
    assert faults == sorted(faults, key=lambda fault: fault.at)
    for fault in faults:
        shortest, longest = LENGTHS[fault.kind]
        assert 0 < fault.at < 300
        assert shortest <= fault.seconds <= longest


def test_links_have_faults_of_their_own_and_the_gateway_has_no_link() -> None:
    targets: dict[bool, set[str]] = {True: set(), False: set()}
    for fault in draw(1, 600, PARTIES, ALL):
        targets[fault.kind.to_links].add(fault.target)
    assert targets[True] == set(PARTIES)
    assert targets[False] == {*PARTIES, GATEWAY}


def test_a_kind_that_is_only_for_some_meets_nobody_else() -> None:
    only = {FaultKind.CORRUPT: ["phone"], FaultKind.CLOCK: ["phone", GATEWAY]}
    met: dict[FaultKind, set[str]] = {kind: set() for kind in ALL}
    for fault in draw(1, 600, PARTIES, ALL, only=only):
        met[fault.kind].add(fault.target)
    assert met[FaultKind.CORRUPT] == {"phone"}
    assert met[FaultKind.CLOCK] == {"phone", GATEWAY}
    assert met[FaultKind.CUT] == set(PARTIES)


def test_a_kind_that_cannot_be_done_is_not_drawn() -> None:
    possible = [kind for kind in FaultKind if kind is not FaultKind.DISK_FULL]
    assert {fault.kind for fault in draw(1, 60, PARTIES, possible)} == set(possible)
