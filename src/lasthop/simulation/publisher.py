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
from lasthop.simulation.schedule import Wish

APP = "rehearsal"


class Publisher:
    """Publishes one request after the other, each until it is told that it was accepted."""

    def __init__(self, kernel: Kernel, random: Random, gateway: GatewayNode) -> None:
        self._kernel = kernel
        self._random = random
        self._gateway = gateway
        self._queue: list[list[Wish]] = []
        self._request = 0
        self.accepted: set[int] = set()
        self.ranks: dict[int, float] = {}
        """The newest rank of a message that was confirmed."""
        self._reranking = 0
        self.cancelled: set[int] = set()
        """Messages that go to one device, or to all or none, for which "cancelled" was the
        answer."""

    @property
    def busy(self) -> bool:
        return bool(self._queue) or self._reranking > 0

    def publish(self, wishes: list[Wish]) -> None:
        """Send this when everything before it has been accepted."""
        self._queue.append(wishes)
        if len(self._queue) == 1:
            self._next()

    def _next(self) -> None:
        self._request += 1
        self._attempt(self._request, self._kernel.now())

    def _attempt(self, request: int, start: Micros) -> None:
        if request != self._request or not self._queue:
            return
        wishes = self._queue[0]
        once = f"{wishes[0].source}-{request}"
        keys: list[int] = []

        def act(gateway: Gateway, now: Micros) -> None:
            submissions = [_submission(wish, start, now) for wish in wishes]
            store = self._gateway.store
            assert store is not None
            own = own_key(wishes[0].source, once)
            found = store.find_keys(APP, [own]).get(own)
            receipt = gateway.publish(
                APP,
                wishes[0].source,
                submissions,
                now,
                once=Idempotency(once, once.encode(), found),
            )
            keys.extend(receipt.repeated or [int(i[:16], 16) for i in receipt.ids])

        self._gateway.act(act, lambda: self._accepted(request, keys))
        # No answer in time: the same request again, under the same key.
        again = self._random.randint(SECOND, 3 * SECOND)
        self._kernel.after(again, lambda: self._attempt(request, start))

    def _accepted(self, request: int, keys: list[int]) -> None:
        if request != self._request or not self._queue:
            return
        wishes = self._queue.pop(0)
        self.accepted.update(wish.number for wish in wishes)
        for wish, key in zip(wishes, keys, strict=True):
            if wish.cancel_after is not None:
                self._kernel.after(wish.cancel_after, partial(self._cancel, wish, key))
            if wish.reranks:
                self._reranking += 1
                self._plan_rerank(wish, key, 0)
        if self._queue:
            self._next()

    def _plan_rerank(self, wish: Wish, key: int, place: int) -> None:
        """One new rank after the other."""
        if place == len(wish.reranks):
            self._reranking -= 1
            return
        delay, rank = wish.reranks[place]
        self._kernel.after(delay, partial(self._rerank, wish, key, place, rank))

    def _rerank(self, wish: Wish, key: int, place: int, rank: float) -> None:
        """Say so until it is confirmed."""
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
                self.ranks[wish.number] = rank
                self._plan_rerank(wish, key, place + 1)

        def again() -> None:
            if not over:
                over.append(True)
                self._rerank(wish, key, place, rank)

        self._gateway.act(act, durable)
        self._kernel.after(self._random.randint(SECOND, 3 * SECOND), again)

    def _cancel(self, wish: Wish, key: int) -> None:
        """Cancel, and hold the gateway to what it answers."""
        answers: list[Withdrawal | None] = []

        def act(gateway: Gateway, now: Micros) -> None:
            answers.append(gateway.cancel(APP, key, now))

        self._gateway.act(act, lambda: self._cancelled(wish, answers[0]))

    def _cancelled(self, wish: Wish, answer: Withdrawal | None) -> None:
        whole = wish.target.startswith(("device:", "queue:")) or wish.binding is Binding.ATOMIC
        if answer is not None and not answer.too_late and whole:
            self.cancelled.add(wish.number)


def _submission(wish: Wish, start: Micros, now: Micros) -> Submission:
    after = start + wish.delay if wish.delay is not None else None
    before = None
    if wish.ttl is not None:
        before = max(start, after or 0, now) + wish.ttl
    return Submission(
        target=parse_target(wish.target),
        body=wish.body,
        priority=wish.priority,
        reliability=wish.reliability,
        method=wish.method,
        deliver_after=after,
        deliver_before=before,
        replace_key=wish.replace_key,
        rank=wish.rank,
        binding=wish.binding,
        pull=wish.pull,
    )
