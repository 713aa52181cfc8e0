"""Would the fault schedules notice? Bugs in atomic messages, claims and queues, planted alone.

About `simulation/groups.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lasthop.core.groups.atomic import AtomicMessage, ReleaseNotice
from lasthop.core.groups.claims import ClaimRecord
from lasthop.core.groups.decider import Standing
from lasthop.core.groups.queue_entry import QueueEntry
from lasthop.core.lifecycle import Step
from lasthop.device.group_part import GroupPart
from lasthop.device.kept import KeptMessages
from lasthop.simulation.faults import run
from lasthop.wire.hop.decisions import GroupDecision, GroupVerdict

SCHEDULES = 400
"""How many schedules with groups a bug may survive. Most are caught by the first ten."""

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def release_when_most_have_it(patch: Patch) -> None:
    """The decision does not wait for the last member."""

    def consider(self: Any, now: int) -> None:
        if self._had >= max(1, self._size - 1) and not self._broken and now < self.before:
            self._release(now)

    patch.setattr(AtomicMessage, "_consider", consider)


def show_what_is_held(patch: Patch) -> None:
    """The device takes a held message for a plain one."""
    patch.setattr("lasthop.device.group_part.is_withheld", lambda headers: False)


def abort_without_a_word(patch: Patch) -> None:
    """Whoever holds an aborted message is told to show it."""
    release = GroupPart._release

    def follow(self: Any, control: Any, now: int) -> None:
        release(self, control, control.in_reply_to)

    patch.setattr(GroupPart, "follow", follow)


def decide_late(patch: Patch) -> None:
    """The deadline does not bound the decision."""
    patch.setattr(AtomicMessage, "woken", lambda self, now: None)
    consider = AtomicMessage._consider

    def late(self: Any, now: int) -> None:
        before, self.before = self.before, now + 1
        consider(self, now)
        self.before = before

    patch.setattr(AtomicMessage, "_consider", late)


def cancel_only_those_who_wait(patch: Patch) -> None:
    """A cancellation says yes although the group has decided."""

    def withdraw(self: Any, step: Step, now: int, reason: str) -> tuple[int, int]:
        return self._size, 0

    patch.setattr(AtomicMessage, "withdraw", withdraw)


def lose_what_is_held(patch: Patch) -> None:
    """The device acknowledges what it holds and does not store it, and nobody notices."""
    keep = KeptMessages.keep

    def forgetful(self: KeptMessages, message: Any) -> None:
        keep(self, message)
        self._stored.clear()

    def shrug(self: Any, delivery: Any, now: int) -> None:
        self.acknowledged(delivery, now)

    patch.setattr(KeptMessages, "keep", forgetful)
    patch.setattr(ReleaseNotice, "dropped", shrug)


def grant_to_everybody(patch: Patch) -> None:
    claim = ClaimRecord.claim

    def generous(self: Any, device: Any, now: int) -> GroupDecision:
        claim(self, device, now)
        return GroupDecision(GroupVerdict.GRANT, device.name)

    patch.setattr(ClaimRecord, "claim", generous)


def forget_the_winner(patch: Patch) -> None:
    """The grant is not written down."""
    note = ClaimRecord.note

    def forgetful(self: Any, now: int) -> None:
        standing, self.standing = self.standing, Standing.CLAIMABLE
        members, self.members = self.members, frozenset(range(1, 10))
        note(self, now)
        self.standing, self.members = standing, members

    patch.setattr(ClaimRecord, "note", forgetful)


def pass_on_unmarked(patch: Patch) -> None:
    """What another consumer may have had is not marked as redelivered."""
    give = QueueEntry.give

    def careless(self: Any, session: Any, now: int) -> None:
        give(self, session, now)
        self.active.redelivered = False

    patch.setattr(QueueEntry, "give", careless)


def give_to_two(patch: Patch) -> None:
    """What waits for a consumer that is gone is given to another, and left with the first."""

    def take_back(self: Any, reason: str, now: int) -> None:
        delivery = self.active
        self._let_go(delivery)
        self.wait(now)

    patch.setattr(QueueEntry, "take_back", take_back)


def forget_the_queue(patch: Patch) -> None:
    """What was with nobody when the gateway stopped is with nobody for ever."""
    patch.setattr(QueueEntry, "restored", lambda self, now: None)


MUTATIONS: list[Mutation] = [
    release_when_most_have_it,
    show_what_is_held,
    abort_without_a_word,
    decide_late,
    cancel_only_those_who_wait,
    lose_what_is_held,
    grant_to_everybody,
    forget_the_winner,
    pass_on_unmarked,
    give_to_two,
    forget_the_queue,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_caught(mutation: Mutation, monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    for seed in range(1, 3 * SCHEDULES, 3):
        try:
            outcome = run(seed, messages=10)
        except Exception:
            return  # A broken invariant may also end the gateway.
        if not outcome.verdict.good:
            return
    pytest.fail(f"{SCHEDULES} schedules found nothing wrong with {mutation.__name__}")
