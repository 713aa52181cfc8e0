"""Would the fault schedules notice what goes wrong with requests? Each of these bugs, planted
alone, must be caught.

About `simulation/exchange.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from lasthop.core.publishing.acceptance import Acceptance
from lasthop.core.publishing.submission import Submission
from lasthop.device.change import Change
from lasthop.device.inbox_memory import MemoryTransaction
from lasthop.device.message import Message
from lasthop.device.requests.pending_requests import Requests
from lasthop.device.requests.request_part import RequestPart
from lasthop.simulation.campaign import run_some
from lasthop.simulation.exchange import draw_asks
from lasthop.simulation.schedule import draw
from lasthop.simulation.surrogates import draw_trouble

SCHEDULES = 150
"""How many schedules with requests a bug may survive. Most are caught by the first ten."""

NEAR = {"settle_too_early": 123, "count_every_answer": 63}
"""Where to begin, for what few schedules show."""

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def show_late_answers(patch: Patch) -> None:
    """An answer that nobody waits for is a message like others."""
    answered = RequestPart._answered

    def shown(self: RequestPart, message: Message, now: int) -> bool:
        if (message.in_reply_to or 0) not in self._requests and message.headers.answer:
            return False
        return answered(self, message, now)

    patch.setattr(RequestPart, "_answered", shown)


def do_not_mark_answers(patch: Patch) -> None:
    """The gateway hands answers on as if they were messages."""
    own = Acceptance._own

    def unmarked(self: Acceptance, app: str, source: str, s: Submission, *rest: Any) -> Any:
        s.answer = False
        return own(self, app, source, s, *rest)

    patch.setattr(Acceptance, "_own", unmarked)


def answer_twice(patch: Patch) -> None:
    """The second answer counts as well."""
    release = Requests._release

    def forgetful(self: Requests, pending: Any) -> None:
        release(self, pending)
        self._pending[pending.key] = pending
        if not pending.wants.callback:
            pending.outcome = None

    patch.setattr(Requests, "_release", forgetful)


def forget_requests(patch: Patch) -> None:
    """Requests for callbacks are not written down."""
    apply = MemoryTransaction.apply

    def without(self: MemoryTransaction, change: Change) -> None:
        change.requested = []
        apply(self, change)

    patch.setattr(MemoryTransaction, "apply", without)


def settle_too_early(patch: Patch) -> None:
    """A request is forgotten when its answer is here, not when it is dealt with."""
    decide = Requests._decide

    def eager(self: Requests, pending: Any, outcome: Any) -> None:
        if pending.wants.callback:
            self._settled.append(pending.key)
        decide(self, pending, outcome)

    patch.setattr(Requests, "_decide", eager)


def never_settle(patch: Patch) -> None:
    """What was dealt with is not written down."""
    apply = MemoryTransaction.apply

    def without(self: MemoryTransaction, change: Change) -> None:
        change.settled = []
        apply(self, change)

    patch.setattr(MemoryTransaction, "apply", without)


def wait_for_ever(patch: Patch) -> None:
    """A callback hears of no deadline."""
    expire = Requests.expire

    def patient(self: Requests, now: int) -> Any:
        for row in expire(self, now):
            self.settle(row.key)
        return []

    patch.setattr(Requests, "expire", patient)


def hand_over_as_they_come(patch: Patch) -> None:
    """Nothing waits for the answer to an earlier request."""

    def hasty(self: Requests, pending: Any, outcome: Any) -> None:
        self._lanes.get(pending.lane, {}).pop(pending.key, None)
        pending.outcome = outcome
        self._release(pending)

    patch.setattr(Requests, "_decide", hasty)


def count_every_answer(patch: Patch) -> None:
    """A member that answers twice stands for another one that has not answered."""
    counts: dict[int, int] = {}
    gather = Requests._gather

    def every(self: Requests, pending: Any, message: Message) -> bool:
        counts[pending.key] = counts.get(pending.key, 0) + (message.source is not None)
        taken = gather(self, pending, message)
        if pending.asked is not None and counts[pending.key] == len(pending.asked) and not taken:
            self._end_gathering(pending, complete=True)
        return taken

    patch.setattr(Requests, "_gather", every)


MUTATIONS: list[Mutation] = [
    show_late_answers,
    do_not_mark_answers,
    answer_twice,
    forget_requests,
    settle_too_early,
    never_settle,
    wait_for_ever,
    hand_over_as_they_come,
    count_every_answer,
]


@cache
def asking() -> list[int]:
    """Schedules in which somebody asks for a callback by name, or everybody."""
    seeds = []
    for seed in range(1, 10 * SCHEDULES):
        asks = [] if draw_trouble(seed) is not None else draw_asks(draw(seed))
        if any(ask.expects.callback or ask.expects.gather for ask in asks):
            seeds.append(seed)
    return seeds[:SCHEDULES]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_caught(mutation: Mutation, monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    first = NEAR.get(mutation.__name__, 0)
    for seed in (seed for seed in asking() if seed >= first):
        if not run_some(seed, 1, 50, 0).good:
            return
    pytest.fail(f"{SCHEDULES} schedules found nothing wrong with {mutation.__name__}")
