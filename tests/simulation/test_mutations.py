"""Would the fault schedules notice? Each of these bugs, planted alone, must be caught.

A mutation replaces one piece of the session, life-cycle or store code by a version with a mistake
that people make. The schedules then have to find fault with it.

About `simulation/faults.py` and `simulation/verdict.py`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import pytest

from lasthop.clock import Micros
from lasthop.core.commits import Commits
from lasthop.core.contacts.inbound import DeviceMessages
from lasthop.core.dispatch import Dispatcher
from lasthop.core.publishing.acceptance import Acceptance
from lasthop.core.session import Session
from lasthop.device.change import Change
from lasthop.device.inbox_memory import MemoryTransaction
from lasthop.device.keys import KeyMemory
from lasthop.device.session import DeviceSession
from lasthop.simulation.campaign import run_some
from lasthop.store.commit import Commit
from lasthop.store.memory import MemoryStore
from lasthop.wire.hop.frames import Ack
from lasthop.wire.hop.sequence import Inbound, Outbound

SCHEDULES = 600
"""How many schedules a bug may survive. Most are caught by the first ten."""

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def send_before_the_commit(patch: Patch) -> None:
    def when_durable(self: Any, action: Callable[[Micros], None]) -> None:
        self._urgent = True
        self._waiting.append((0, action))

    patch.setattr(Commits, "when_durable", when_durable)


def commit_late(patch: Patch) -> None:
    """The store says "durable" one commit too early."""
    apply = MemoryStore.apply
    held: dict[MemoryStore, Commit] = {}

    def late(self: MemoryStore, *commits: Commit) -> None:
        for commit in commits:
            if self in held:
                apply(self, held.pop(self))
            held[self] = commit

    patch.setattr(MemoryStore, "apply", late)


def forget_sessions(patch: Patch) -> None:
    """The store keeps deliveries but not how far the numbers have come."""
    apply = MemoryStore.apply

    def without(self: MemoryStore, *commits: Commit) -> None:
        for commit in commits:
            commit.sessions.clear()
        apply(self, *commits)

    patch.setattr(MemoryStore, "apply", without)


def forget_a_number(patch: Patch) -> None:
    """A sequence number is given out and not written down."""
    row = Session.row

    def short(self: Session) -> Any:
        kept = row(self)
        kept.assigned = max(kept.received, kept.assigned - 1)
        return kept

    patch.setattr(Session, "row", short)


def skip_an_acknowledgement(patch: Patch) -> None:
    """What a device sends is taken and never acknowledged."""
    patch.setattr(DeviceMessages, "settle", lambda self, session: None)


def take_received_for_delivered(patch: Patch) -> None:
    acknowledge = Outbound.acknowledge

    def eager(self: Any, ack: Ack) -> Any:
        return acknowledge(self, Ack(ack.received, ack.received, ack.individual))

    patch.setattr(Outbound, "acknowledge", eager)


def do_not_resend(patch: Patch) -> None:
    patch.setattr(Dispatcher, "resume", lambda self, session, now: None)


def show_duplicates(patch: Patch) -> None:
    receive = Inbound.receive

    def gullible(self: Any, seq: int, item: Any, *, reorder: bool = True) -> Any:
        return [item] if seq < self.received else receive(self, seq, item, reorder=reorder)

    patch.setattr(Inbound, "receive", gullible)


def do_not_reorder(patch: Patch) -> None:
    receive = Inbound.receive

    def hasty(self: Any, seq: int, item: Any, *, reorder: bool = True) -> Any:
        return receive(self, seq, item, reorder=False)

    patch.setattr(Inbound, "receive", hasty)


def acknowledge_before_the_inbox(patch: Patch) -> None:
    """The device acknowledges what it has not stored."""
    change = DeviceSession.change

    def hasty(self: DeviceSession, *, flush: bool = False) -> Any:
        made = change(self, flush=flush)
        if made is not None:
            self.committed(made.n)
        return made

    patch.setattr(DeviceSession, "change", hasty)


def forget_keys(patch: Patch) -> None:
    """The device does not recognise a message that comes under a new number."""
    patch.setattr(KeyMemory, "__contains__", lambda self, key: False)


def lose_half_a_transaction(patch: Patch) -> None:
    """The inbox keeps the application's work and forgets that the message was processed."""
    apply = MemoryTransaction.apply

    def torn(self: MemoryTransaction, change: Change) -> None:
        if change.n % 7:
            apply(self, change)

    patch.setattr(MemoryTransaction, "apply", torn)


def ignore_idempotency_keys(patch: Patch) -> None:
    patch.setattr(Acceptance, "repeated", lambda self, app, source, once: None)


def last_in_first_out(patch: Patch) -> None:
    def enqueue(self: Any, delivery: Any) -> None:
        if self._waiting is None:
            self._waiting = []
        message = delivery.item.message
        heapq.heappush(self._waiting, (-message.priority, -message.key, delivery))

    patch.setattr(Session, "enqueue", enqueue)


MUTATIONS: list[Mutation] = [
    send_before_the_commit,
    commit_late,
    forget_sessions,
    forget_a_number,
    skip_an_acknowledgement,
    take_received_for_delivered,
    do_not_resend,
    show_duplicates,
    do_not_reorder,
    acknowledge_before_the_inbox,
    forget_keys,
    lose_half_a_transaction,
    ignore_idempotency_keys,
    last_in_first_out,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_caught(mutation: Mutation, monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    for seed in range(0, SCHEDULES, 5):
        if not run_some(seed, 5, 50, 0).good:
            return
    pytest.fail(f"{SCHEDULES} schedules found nothing wrong with {mutation.__name__}")
