"""Fault schedules over the air: one true end for everything, and bugs that they must notice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from lasthop.clock import Micros
from lasthop.core import restore
from lasthop.core.air.feature import AirFeature
from lasthop.core.commits import Commits
from lasthop.core.lifecycle import Step
from lasthop.delivery.carrier import Confirmed, NotReached, Outcome, Unanswered
from lasthop.delivery.ota.sessions import SessionCarrier
from lasthop.simulation.air.faults import run
from lasthop.simulation.campaign import campaign
from lasthop.wire.ota.wsp_server import SessionServer
from lasthop.wire.wtp.endpoint import Endpoint
from lasthop.wire.wtp.responder import Phase, Responder

SCHEDULES = int(os.environ.get("LASTHOP_AIR_SCHEDULES", "120"))
"""`make nightly` asks for thousands."""

MOST = 60
"""Schedules that a planted bug may survive."""

Patch = pytest.MonkeyPatch


@pytest.mark.timeout(1800)
@pytest.mark.conformance("PPG-GEN-S-011", "PPG-GEN-S-013", "PPG-GEN-S-027")
def test_everything_that_was_accepted_comes_to_one_true_end() -> None:
    tally = campaign(
        schedules=SCHEDULES, seed=0, messages=30, sqlite_every=20, processes=1, stage="air"
    )
    assert tally.schedules == SCHEDULES
    assert tally.crashes > SCHEDULES
    assert tally.good, f"seed {tally.failing_seed}: {tally.why}"


def test_parcels_are_withdrawn_in_every_place(monkeypatch: Patch) -> None:
    places = Counter[bool]()
    withdraw = SessionCarrier.withdraw

    def counted(self: Any, number: int) -> bool:
        place = self._places.get(number)
        withdrawn = withdraw(self, number)
        places[isinstance(place, str)] += withdrawn
        return withdrawn

    monkeypatch.setattr(SessionCarrier, "withdraw", counted)
    for seed in range(40):
        run(seed)
    assert places[True] > 5, "while they waited for a session"
    assert places[False], "while they waited for their turn"


def test_a_seed_gives_the_same_schedule_again() -> None:
    assert run(7) == run(7)


def take_silence_for_consent(patch: Patch) -> None:
    unanswered = SessionCarrier._report

    def report(self: Any, ticket: Any, outcome: Outcome) -> None:
        unanswered(self, ticket, Confirmed() if isinstance(outcome, Unanswered) else outcome)

    patch.setattr(SessionCarrier, "_report", report)


def take_silence_for_absence(patch: Patch) -> None:
    """What may have been shown is called never sent."""
    unanswered = SessionCarrier._report

    def report(self: Any, ticket: Any, outcome: Outcome) -> None:
        if isinstance(outcome, Unanswered):
            outcome = NotReached(outcome.reason)
        unanswered(self, ticket, outcome)

    patch.setattr(SessionCarrier, "_report", report)


def forget_what_was_with_a_carrier(patch: Patch) -> None:
    """After a crash nothing is carried again."""

    def carried(room: Any, delivery: Any, now: Micros) -> None:
        delivery.session.depart(delivery, numbered=False)
        room.step(delivery, Step.HAND_OVER, now, "gone")

    patch.setattr(restore, "_carried_before", carried)


def leave_before_the_commit(patch: Patch) -> None:
    def when_durable(self: Any, action: Callable[[Micros], None]) -> None:
        self._urgent = True
        self._waiting.append((0, action))

    patch.setattr(Commits, "when_durable", when_durable)


def forget_transactions_at_once(patch: Patch) -> None:
    """A client that does not remember what it has acknowledged, and a gateway that never asks."""
    acknowledge = Responder.acknowledge

    def forgetful(self: Any, now: Micros) -> None:
        acknowledge(self, now)
        self._phase, self.due = Phase.GONE, None

    patch.setattr(Responder, "acknowledge", forgetful)
    patch.setattr(Endpoint, "_is_next", lambda self, peer, tid: True)


def withdraw_and_keep(patch: Patch) -> None:
    """A carrier says that it has given a parcel back, and pushes it later."""
    patch.setattr(SessionCarrier, "_forget_waiting", lambda self, host, number: None)
    carried = AirFeature.carried

    def heard(self: Any, message: int, device: int, outcome: Outcome, now: Micros) -> None:
        if (message, device) in self._under_way:
            carried(self, message, device, outcome, now)

    patch.setattr(AirFeature, "carried", heard)


def withdraw_what_has_left(patch: Patch) -> None:
    """A carrier says that it has given a parcel back of which something has left."""
    patch.setattr(SessionServer, "waits", lambda self, ticket: True)
    patch.setattr(SessionServer, "withdraw", lambda self, tickets, now: set(tickets))


def lose_an_attempt(patch: Patch) -> None:
    """A report is dropped."""
    carried = AirFeature.carried
    count = 0

    def drop(self: Any, *facts: Any) -> None:
        nonlocal count
        count += 1
        if count % 20:
            carried(self, *facts)

    patch.setattr(AirFeature, "carried", drop)


@pytest.mark.parametrize(
    "mutation",
    [
        take_silence_for_consent,
        take_silence_for_absence,
        forget_what_was_with_a_carrier,
        leave_before_the_commit,
        forget_transactions_at_once,
        withdraw_and_keep,
        withdraw_what_has_left,
        lose_an_attempt,
    ],
)
def test_a_planted_bug_is_noticed(
    mutation: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    assert any(not run(seed).verdict.good for seed in range(MOST)), "nobody noticed"
