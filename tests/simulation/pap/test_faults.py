"""Fault schedules of pushes: one end for every address, and the initiator hears of it.

The second half plants bugs, one at a time: the schedules must find fault with each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from typer.testing import CliRunner

from lasthop.core.pushes.addresses import AddressBook
from lasthop.core.pushes.feature import PushFeature
from lasthop.core.pushes.notification import Notifications
from lasthop.core.pushes.push import PushInProgress
from lasthop.core.pushes.push_ids import PushIds
from lasthop.runtime.cli import app
from lasthop.simulation.campaign import campaign, run_some
from lasthop.simulation.pap import initiator
from lasthop.simulation.pap.faults import run
from lasthop.store.tables.pushes import PushesInMemory
from lasthop.wire.pap.documents import ReplaceMethod
from lasthop.wire.pap.outcomes import RELEASED, REPLACEMENT, PushReport, Replacement

SCHEDULES = int(os.environ.get("LASTHOP_PAP_SCHEDULES", "40"))
"""`make nightly` runs five thousand by the command."""

SURVIVES = 60
"""How many schedules a bug may survive."""

Patch = pytest.MonkeyPatch


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_address_of_every_push_comes_to_one_end_and_the_initiator_hears_it() -> None:
    tally = campaign(
        schedules=SCHEDULES, seed=0, messages=20, sqlite_every=20, processes=1, stage="pap"
    )
    assert (tally.schedules, tally.messages) == (SCHEDULES, 20 * SCHEDULES)
    assert tally.crashes > SCHEDULES
    assert tally.good, f"seed {tally.failing_seed}: {tally.why}"


def test_a_seed_gives_the_same_schedule_again() -> None:
    assert run(3) == run(3)


def test_the_command_prints_the_counts_as_json() -> None:
    arguments = ["sim", "pap", "--schedules", "2", "--seed", "5", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert (report["schedules"], report["messages"], report["failing_seed"]) == (2, 40, None)


def forget_notifications_in_a_crash(patch: Patch) -> None:
    patch.setattr(Notifications, "restore", lambda *_: None)


def note_outcomes_without_writing_them(patch: Patch) -> None:
    def write(self: Notifications, notification: Any, row: Any) -> None:
        notification.row = row

    patch.setattr(Notifications, "_write", write)


def tell_once_and_never_again(patch: Patch) -> None:
    def failed(self: Any, notification: Any, answer: Any, now: int) -> None:
        self._end(notification, "notification_given_up", "why bother", now)

    patch.setattr(Notifications, "_failed", failed)


def never_look_whether_an_initiator_is_back(patch: Patch) -> None:
    pump = Notifications._pump

    def stuck(self: Any, destination: Any, now: int) -> None:
        if not destination.failures:
            pump(self, destination, now)

    patch.setattr(Notifications, "_pump", stuck)


def let_the_last_outcome_win(patch: Patch) -> None:
    def take(self: Any, place: int, report: PushReport) -> None:
        self._best[place] = report

    patch.setattr(PushInProgress, "_take", take)


def take_the_first_end_for_the_end(patch: Patch) -> None:
    fold = PushInProgress._fold

    def hasty(self: Any, *end: Any) -> Iterable[int]:
        number = end[0]
        list(fold(self, *end))
        return [place for place in self.places(number) if not self._told[place]]

    patch.setattr(PushInProgress, "_fold", hasty)


def forget_push_ids_in_a_crash(patch: Patch) -> None:
    check = PushIds.check
    patch.setattr(PushIds, "check", lambda self, i, known, p: check(self, i, None, p))


def accept_pushes_without_their_rows(patch: Patch) -> None:
    patch.setattr(PushesInMemory, "find", lambda self, ids: {})


def always_say_that_it_was_cancelled(patch: Patch) -> None:
    cancel = PushFeature.cancel

    def yes(self: Any, *asked: Any) -> Any:
        codes = cancel(self, *asked)
        return None if codes is None else [(text, 1000) for text, _ in codes]

    patch.setattr(PushFeature, "cancel", yes)


def leave_the_replaced_push_where_it_is(patch: Patch) -> None:
    for key, done in list(REPLACEMENT.items()):
        if done.take_back:
            patch.setitem(REPLACEMENT, key, Replacement(False, True))


def replace_where_it_is_not_pending(patch: Patch) -> None:
    patch.setitem(REPLACEMENT, (ReplaceMethod.PENDING_ONLY, RELEASED), Replacement(False, True))


def lose_the_rest_of_an_interrupted_fan_out(patch: Patch) -> None:
    patch.setattr(PushInProgress, "reach", lambda self, registry: {})


def forget_the_push_of_a_message_in_a_crash(patch: Patch) -> None:
    patch.setattr(PushFeature, "attach", lambda self, item: None)


def say_duplicate_before_it_is_durable(patch: Patch) -> None:
    """The initiator takes it for accepted, and a crash undoes it."""
    attempt = initiator.InitiatorNode._attempt

    def eager(self: Any, plan: Any) -> None:
        act = self._gateway.act

        def acting(action: Any, durable: Callable[[], None]) -> bool:
            gateway = self._gateway.gateway
            if gateway is None:
                return False
            recent = len(gateway.pushes._ids._recent)
            action(gateway, self._kernel.now())
            if len(gateway.pushes._ids._recent) == recent:
                durable()
                return True
            return bool(act(lambda *_: None, durable))

        patch.setattr(self._gateway, "act", acting)
        attempt(self, plan)
        patch.setattr(self._gateway, "act", act)

    patch.setattr(initiator.InitiatorNode, "_attempt", eager)


def mislay_addresses_in_a_crash(patch: Patch) -> None:
    """Nobody is at the group's address any more."""
    patch.setattr(AddressBook, "restore", lambda self, rows: None)


BUGS = [
    forget_notifications_in_a_crash,
    note_outcomes_without_writing_them,
    tell_once_and_never_again,
    never_look_whether_an_initiator_is_back,
    let_the_last_outcome_win,
    take_the_first_end_for_the_end,
    forget_push_ids_in_a_crash,
    accept_pushes_without_their_rows,
    always_say_that_it_was_cancelled,
    leave_the_replaced_push_where_it_is,
    replace_where_it_is_not_pending,
    lose_the_rest_of_an_interrupted_fan_out,
    forget_the_push_of_a_message_in_a_crash,
    say_duplicate_before_it_is_durable,
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Callable[[Patch], None], monkeypatch: Patch) -> None:
    bug(monkeypatch)
    for seed in range(SURVIVES):
        if not run_some(seed, 1, 20, 0, "pap").good:
            return
    pytest.fail(f"{bug.__name__} survived {SURVIVES} schedules")
