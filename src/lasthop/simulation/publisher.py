"""A publisher in rehearsal: it repeats a request until it is answered, and keeps the answers."""

from __future__ import annotations

from functools import partial
from random import Random

from lasthop.clock import SECOND, Micros
from lasthop.core.gateway import Gateway, Idempotency
from lasthop.core.lifecycle import State
from lasthop.core.names import parse_target
from lasthop.core.publishing.acceptance import Withdrawal, own_key
from lasthop.core.publishing.submission import Submission
from lasthop.message import Binding
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.schedule import PlannedMessage

APP = "rehearsal"


class Publisher:
    """A publisher that sends one request after the other, and repeats each until it is accepted."""

    def __init__(self, kernel: Kernel, random: Random, gateway: GatewayNode) -> None:
        self._kernel = kernel
        self._random = random
        self._gateway = gateway
        self._queue: list[list[PlannedMessage]] = []
        self._request = 0
        self.accepted: set[int] = set()
        self.ranks: dict[int, float] = {}
        """The latest confirmed rank of a message, by its number."""
        self._reranking = 0
        self.cancelled: set[int] = set()
        """The numbers of messages whose cancellation was confirmed, among those that go to one
        device, or to all members of a group or none."""

    @property
    def busy(self) -> bool:
        return bool(self._queue) or self._reranking > 0

    def publish(self, plans: list[PlannedMessage]) -> None:
        """Send these messages in one request, after all earlier requests have been accepted."""
        self._queue.append(plans)
        if len(self._queue) == 1:
            self._next()

    def _next(self) -> None:
        self._request += 1
        self._attempt(self._request, self._kernel.now())

    def _attempt(self, request: int, start: Micros) -> None:
        if request != self._request or not self._queue:
            return
        plans = self._queue[0]
        once = f"{plans[0].source}-{request}"
        keys: list[int] = []

        def act(gateway: Gateway, now: Micros) -> None:
            submissions = [_submission(plan, start, now) for plan in plans]
            store = self._gateway.store
            assert store is not None
            own = own_key(plans[0].source, once)
            found = store.find_keys(APP, [own]).get(own)
            receipt = gateway.publish(
                APP,
                plans[0].source,
                submissions,
                now,
                once=Idempotency(once, once.encode(), found),
            )
            keys.extend(receipt.repeated or [int(i[:16], 16) for i in receipt.ids])

        self._gateway.act(act, lambda: self._accepted(request, keys))
        # Without an answer in time, the same request is sent again under the same key.
        again = self._random.randint(SECOND, 3 * SECOND)
        self._kernel.after(again, lambda: self._attempt(request, start))

    def _accepted(self, request: int, keys: list[int]) -> None:
        if request != self._request or not self._queue:
            return
        plans = self._queue.pop(0)
        self.accepted.update(plan.number for plan in plans)
        for plan, key in zip(plans, keys, strict=True):
            if plan.cancel_after is not None:
                self._kernel.after(plan.cancel_after, partial(self._cancel, plan, key))
            if plan.reranks:
                self._reranking += 1
                self._plan_rerank(plan, key, 0)
        if self._queue:
            self._next()

    def _plan_rerank(self, plan: PlannedMessage, key: int, place: int) -> None:
        """Plan the next change of a message's rank, after the one before was confirmed."""
        if place == len(plan.reranks):
            self._reranking -= 1
            return
        delay, rank = plan.reranks[place]
        self._kernel.after(delay, partial(self._rerank, plan, key, place, rank))

    def _rerank(self, plan: PlannedMessage, key: int, place: int, rank: float) -> None:
        """Send a new rank until it is confirmed."""
        over: list[bool] = []

        def act(gateway: Gateway, now: Micros) -> None:
            store = self._gateway.store
            assert store is not None
            message = store.messages([key]).get(key)
            if message is not None:
                rows = store.deliveries(key)
                had = [row.device for row in rows if row.state == State.DELIVERED]
                gateway.ranked.change_rank(APP, message, rank, had, now)

        def durable() -> None:
            if not over:
                over.append(True)
                self.ranks[plan.number] = rank
                self._plan_rerank(plan, key, place + 1)

        def again() -> None:
            if not over:
                over.append(True)
                self._rerank(plan, key, place, rank)

        self._gateway.act(act, durable)
        self._kernel.after(self._random.randint(SECOND, 3 * SECOND), again)

    def _cancel(self, plan: PlannedMessage, key: int) -> None:
        """Cancel a message, and note the gateway's answer so that it can be judged."""
        answers: list[Withdrawal | None] = []

        def act(gateway: Gateway, now: Micros) -> None:
            answers.append(gateway.cancel(APP, key, now))

        self._gateway.act(act, lambda: self._cancelled(plan, answers[0]))

    def _cancelled(self, plan: PlannedMessage, answer: Withdrawal | None) -> None:
        whole = plan.target.startswith(("device:", "queue:")) or plan.binding is Binding.ATOMIC
        if answer is not None and not answer.too_late and whole:
            self.cancelled.add(plan.number)


def _submission(plan: PlannedMessage, start: Micros, now: Micros) -> Submission:
    after = start + plan.delay if plan.delay is not None else None
    before = None
    if plan.ttl is not None:
        before = max(start, after or 0, now) + plan.ttl
    return Submission(
        target=parse_target(plan.target),
        body=plan.body,
        priority=plan.priority,
        queue=plan.queue,
        reliability=plan.reliability,
        method=plan.method,
        deliver_after=after,
        deliver_before=before,
        replace_key=plan.replace_key,
        rank=plan.rank,
        binding=plan.binding,
        pull=plan.pull,
    )
