"""Accepts pushes in batches: many pushes are looked up, submitted and made durable together.

While the store is asked about some pushes, the next ones gather; those that were looked up are
submitted together and wait for one commit, without a task for each push.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import NamedTuple, TypeAlias

import msgspec

from lasthop.access.live_gateway import LiveGateway
from lasthop.access.pap.lookups import Lookups
from lasthop.clock import Micros
from lasthop.core.gateway import Gateway
from lasthop.core.pushes.feature import Order
from lasthop.core.pushes.push_ids import DuplicatePush, identify
from lasthop.errors import OutcomeOpen, Overloaded
from lasthop.store.pushes import KnownPush

Done: TypeAlias = Callable[[Exception | None], None]
"""Called once for a push: with None when it is accepted and durable, or with the reason why it is
not accepted."""


class _Arrival(NamedTuple):
    app: str
    source: str
    order: Order
    identity: bytes
    replaced: bytes | None
    done: Done


class PushArrivals:
    """Collects arriving pushes and submits them to the gateway in batches."""

    def __init__(self, live: LiveGateway, lookups: Lookups) -> None:
        self._live = live
        self._lookups = lookups
        self._gathering: list[_Arrival] = []
        self._looking = False
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(
        self, app: str, source: str, order: Order, *, replacing: str | None, done: Done
    ) -> None:
        """Submit an order, after asking the store about its push-id and about the push that it
        replaces; `done` hears the outcome."""
        identity = identify(app, source, order.push_id)
        replaced = None if replacing is None else identify(app, source, replacing)
        self._gathering.append(_Arrival(app, source, order, identity, replaced, done))
        if not self._looking:
            self._looking = True
            self._begin(self._look())

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look(self) -> None:
        """Look up the gathered pushes in the store, batch by batch, until none are left."""
        while self._gathering:
            arrivals, self._gathering = self._gathering, []
            wanted = {arrival.identity for arrival in arrivals}
            wanted.update(a.replaced for a in arrivals if a.replaced is not None)
            try:
                found = await self._lookups.find(*wanted)
            except Exception as error:
                for arrival in arrivals:
                    arrival.done(error)
            else:
                # The next lookup need not wait for this commit.
                self._begin(self._accept(arrivals, found))
        self._looking = False

    async def _accept(self, arrivals: list[_Arrival], found: dict[bytes, KnownPush]) -> None:
        """Submit pushes that were looked up, and tell each of them when their common commit is
        durable."""
        waiting: list[tuple[_Arrival, Exception | None]] = [(each, None) for each in arrivals]

        def submit(gateway: Gateway, now: Micros) -> None:
            waiting.clear()
            for arrival in arrivals:
                order = _informed(arrival, found) if found else arrival.order
                try:
                    gateway.pushes.submit(arrival.app, arrival.source, order, now)
                except DuplicatePush as error:
                    # To an initiator that missed our answer this means that its push was accepted:
                    # it must be durable before we say so.
                    waiting.append((arrival, error))
                except Exception as error:
                    arrival.done(error)
                else:
                    waiting.append((arrival, None))

        failure: Exception | None = None
        try:
            await self._live.call(submit)
        except Overloaded as error:
            waiting = [(a, self._earlier(a, found.get(a.identity), error)) for a in arrivals]
        except Exception as error:
            failure = error
        for arrival, outcome in waiting:
            arrival.done(failure or outcome)

    def _earlier(
        self, arrival: _Arrival, known: KnownPush | None, refusal: Overloaded
    ) -> Exception:
        """Return the error for a push after the gateway refused it as overloaded: that its push-id
        was used, that an earlier request with it is still open, or the refusal itself."""
        if known is not None:
            return DuplicatePush("this push-id was used before", push_id=arrival.order.push_id)
        if self._live.look(lambda gateway: gateway.pushes.is_used(arrival.identity)):
            return OutcomeOpen(
                "an earlier request with this push-id is not written yet; the outcome is open",
                retry_after=refusal.retry_after,
            )
        return refusal


def _informed(arrival: _Arrival, found: dict[bytes, KnownPush]) -> Order:
    """Return the order of an arrival with what the store knows of its push-ids."""
    return msgspec.structs.replace(
        arrival.order,
        known=found.get(arrival.identity),
        replaced=None if arrival.replaced is None else found.get(arrival.replaced),
    )
