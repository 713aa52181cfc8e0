"""Would the fault schedules notice what goes wrong with surrogates? Each of these bugs, planted
alone, must be caught.

About `simulation/surrogates.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lasthop.core.delivery import Delivery
from lasthop.core.session import Session
from lasthop.core.surrogates.feature import SurrogateFeature
from lasthop.core.surrogates.verdicts import VerdictRules
from lasthop.core.surrogates.waiting import Consultation, SurrogateQueue
from lasthop.message import Message
from lasthop.simulation.campaign import run_some
from lasthop.store.commit import Commit
from lasthop.store.memory import MemoryStore
from lasthop.store.surrogates import SurrogateChanges
from lasthop.surrogate.state import StateLedger

SCHEDULES = 300
"""How many schedules with a surrogate a bug may survive. Most are caught by the first ten."""

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def commit_the_state_late(patch: Patch) -> None:
    """The state is written with the commit after the one that closes its input."""
    apply = MemoryStore.apply
    held: dict[MemoryStore, dict[tuple[str, str], Any]] = {}

    def late(self: MemoryStore, *commits: Commit) -> None:
        for commit in commits:
            earlier = held.pop(self, {})
            if SurrogateChanges in commit.changes:
                changes = commit.of(SurrogateChanges)
                held[self], changes.states = changes.states, earlier
            elif earlier:
                commit.of(SurrogateChanges).states = earlier
            apply(self, commit)

    patch.setattr(MemoryStore, "apply", late)


def forget_the_state(patch: Patch) -> None:
    """The state is changed here and not written down."""

    def remember(self: Any, post: SurrogateQueue, verdict: Any) -> None:
        post.change(verdict.state)

    patch.setattr(VerdictRules, "remember", remember)


def forget_that_it_is_done(patch: Patch) -> None:
    """An input is asked about again after a crash, though it has counted."""
    note = SurrogateFeature._note

    def careless(self: SurrogateFeature, consultation: Consultation, *, done: bool = False) -> None:
        if not done or consultation.number % 5:
            note(self, consultation, done=done)

    patch.setattr(SurrogateFeature, "_note", careless)


def forget_that_it_waits(patch: Patch) -> None:
    """What waits is not written down, and goes on by itself after a crash."""
    note = SurrogateFeature._note

    def careless(self: SurrogateFeature, consultation: Consultation, *, done: bool = False) -> None:
        if done:
            note(self, consultation, done=True)

    patch.setattr(SurrogateFeature, "_note", careless)


def apply_failed_work(patch: Patch) -> None:
    """A worker that died has left its state behind."""
    give_back = SurrogateQueue.give_back

    def hasty(self: SurrogateQueue) -> None:
        give_back(self)
        self.state["uturn"] = b"\x01"

    patch.setattr(SurrogateQueue, "give_back", hasty)


def keep_a_part(patch: Patch) -> None:
    """The worker goes on with a part of what an input has changed."""
    keep = StateLedger.keep

    def sloppy(self: StateLedger, changes: dict[str, bytes]) -> None:
        keep(self, {name: value for name, value in changes.items() if name != "usum"})

    patch.setattr(StateLedger, "keep", sloppy)


def go_on_unasked(patch: Patch) -> None:
    """A delivery is queued while its surrogate thinks."""
    keep = SurrogateFeature.keep

    def eager(self: SurrogateFeature, delivery: Delivery, *, ready: bool) -> None:
        keep(self, delivery, ready=ready)
        if delivery.item.message.key % 7 == 0:
            delivery.session.enqueue(delivery)
            self._deliveries.touch(delivery.session)

    patch.setattr(SurrogateFeature, "keep", eager)


def last_in_first_out(patch: Patch) -> None:
    def newest_first(self: Consultation, other: Consultation) -> bool:
        return self.number > other.number

    patch.setattr(Consultation, "__lt__", newest_first)


def lose_what_was_changed(patch: Patch) -> None:
    """After a crash a message that the surrogate changed is as it was."""
    patch.setattr(SurrogateFeature, "reopening", lambda self, delivery, row: None)


def forget_what_devices_sent(patch: Patch) -> None:
    """What a device sent and waits does not come back after a crash."""

    def hold_again(self: Any, row: Any, message: Message, now: int) -> None:
        self._held_rows[row.message] = row

    patch.setattr(SurrogateFeature, "_hold_again", hold_again)


def answer_and_send(patch: Patch) -> None:
    """What the surrogate stops is delivered all the same."""
    stop = VerdictRules._stop

    def leaky(self: Any, consultation: Consultation, told: str, now: int) -> None:
        if consultation.delivery is not None and consultation.number % 3 == 0:
            self.pass_on(consultation, None, told, now)
        else:
            stop(self, consultation, told, now)

    patch.setattr(VerdictRules, "_stop", leaky)


def forget_the_queue(patch: Patch) -> None:
    """What goes on is not put into its device's queue."""
    pass_on = VerdictRules.pass_on

    def forgetful(self: Any, consultation: Consultation, *rest: Any) -> None:
        if consultation.number % 11:
            pass_on(self, consultation, *rest)
            return
        enqueue, Session.enqueue = Session.enqueue, lambda self, delivery: None  # type: ignore[method-assign]
        try:
            pass_on(self, consultation, *rest)
        finally:
            Session.enqueue = enqueue  # type: ignore[method-assign]

    patch.setattr(VerdictRules, "pass_on", forgetful)


MUTATIONS: list[Mutation] = [
    commit_the_state_late,
    forget_the_state,
    forget_that_it_is_done,
    forget_that_it_waits,
    apply_failed_work,
    keep_a_part,
    go_on_unasked,
    last_in_first_out,
    lose_what_was_changed,
    forget_what_devices_sent,
    answer_and_send,
    forget_the_queue,
]


def test_the_usual_schedules_have_surrogates(monkeypatch: Patch) -> None:
    """Or else nothing below would mean anything."""
    asked: list[object] = []
    consulted = SurrogateFeature.consulted

    def count(self: SurrogateFeature, *word: Any) -> str | None:
        asked.append(word)
        return consulted(self, *word)

    monkeypatch.setattr(SurrogateFeature, "consulted", count)
    assert run_some(0, 9, 50, 0).good
    assert len(asked) > 60


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_caught(mutation: Mutation, monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    for seed in range(2, 3 * SCHEDULES, 3):
        if not run_some(seed, 1, 50, 0).good:
            return
    pytest.fail(f"{SCHEDULES} schedules found nothing wrong with {mutation.__name__}")
