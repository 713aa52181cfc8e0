"""Many pushes at once: looked up and submitted together, and each hears what is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from lasthop.access.pap.arrivals import PushArrivals
from lasthop.access.pap.lookups import Lookups
from lasthop.core.gateway import Gateway
from lasthop.core.publishing.submission import Submission
from lasthop.core.pushes.addresses import AddressUnknown
from lasthop.core.pushes.feature import Order, PushUnknown
from lasthop.core.pushes.push_ids import DuplicatePush
from lasthop.errors import OutcomeOpen, Overloaded, StoreBroken
from lasthop.message import Target, TargetKind
from lasthop.store.base import Reader
from lasthop.wire.pap.documents import ReplaceMethod
from tests.access.live import LiveInMemory
from tests.access.pap.initiating import user

T = TypeVar("T")
Outcome = Exception | None

ME = "publisher:me"
NOBODY = Target(TargetKind.PUSH, "")


@pytest.fixture
def way_in() -> None:
    """There is no door in front of this."""


class Counted(LiveInMemory):
    """Counts questions to the store, and can fail to answer them."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.asked = asyncio.Event()
        self.broken = False

    async def read(self, ask: Callable[[Reader], T]) -> T:
        self.reads += 1
        self.asked.set()
        if self.broken:
            raise StoreBroken("no answer")
        return await super().read(ask)


@pytest.fixture
async def counted() -> Counted:
    live = Counted()
    live.register("watch", user="bob")
    live.calls = live.reads = 0
    return live


class Crowd:
    """Submits, and notes what everybody hears, in that order."""

    def __init__(self, live: LiveInMemory) -> None:
        self.arrivals = PushArrivals(live, Lookups(live))
        self.heard: list[tuple[str, Outcome]] = []
        self.expected = 0
        self._all = asyncio.Event()

    def submit(self, push_id: str, to: str = "bob", replacing: str | None = None) -> None:
        order = Order(
            push_id=push_id,
            addresses=(user(to),),
            submission=Submission(target=NOBODY, body=push_id.encode()),
            replace=None if replacing is None else ReplaceMethod.ALL,
        )
        self.expected += 1

        def done(outcome: Outcome) -> None:
            self.heard.append((push_id, outcome))
            if len(self.heard) == self.expected:
                self._all.set()

        self.arrivals.submit("default", ME, order, replacing=replacing, done=done)

    async def wait(self) -> dict[str, type[Exception] | None]:
        """The kind of what each heard; nobody hears twice."""
        await self._all.wait()
        self._all.clear()
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(self.heard) == self.expected
        return {
            push_id: None if outcome is None else type(outcome) for push_id, outcome in self.heard
        }


async def test_those_who_come_together_share_a_look_and_a_commit(counted: Counted) -> None:
    crowd = Crowd(counted)
    for number in range(50):
        crowd.submit(str(number))
    assert set((await crowd.wait()).values()) == {None}
    assert (counted.reads, counted.calls) == (1, 1)
    assert len(list(counted.store.all_deliveries())) == 50
    assert [push_id for push_id, _ in crowd.heard] == [str(number) for number in range(50)]


async def test_who_comes_during_a_look_has_the_next(counted: Counted) -> None:
    crowd = Crowd(counted)
    crowd.submit("first")
    await counted.asked.wait()
    crowd.submit("second")
    crowd.submit("third")
    await crowd.wait()
    assert (counted.reads, counted.calls) == (2, 2)


async def test_nobody_hears_before_the_commit(counted: Counted) -> None:
    crowd = Crowd(counted)
    durable: list[int] = []
    crowd.submit("1")
    call = counted.call

    async def spied(act: Callable[[Gateway, int], T]) -> T:
        result = await call(act)
        assert crowd.heard == []
        durable.append(len(list(counted.store.all_deliveries())))
        return result

    counted.call = spied  # type: ignore[method-assign]
    await crowd.wait()
    assert durable == [1]


async def test_one_refusal_is_nobody_elses(counted: Counted) -> None:
    crowd = Crowd(counted)
    crowd.submit("1")
    crowd.submit("2", to="nobody")
    crowd.submit("1")
    crowd.submit("3", replacing="none")
    crowd.submit("4")
    await crowd.wait()
    kinds = [outcome and type(outcome) for _, outcome in sorted(crowd.heard, key=lambda h: h[0])]
    assert kinds == [None, DuplicatePush, AddressUnknown, PushUnknown, None]
    assert len(list(counted.store.all_deliveries())) == 2


async def test_what_was_accepted_before_is_found_and_can_be_replaced(counted: Counted) -> None:
    crowd = Crowd(counted)
    crowd.submit("1")
    await crowd.wait()
    crowd.submit("2", replacing="1")
    crowd.submit("1")
    heard = await crowd.wait()
    assert heard == {"1": DuplicatePush, "2": None}


async def test_a_full_disk_is_everybodys(counted: Counted) -> None:
    crowd = Crowd(counted)
    counted.full = True
    crowd.submit("1")
    crowd.submit("2")
    assert await crowd.wait() == {"1": Overloaded, "2": Overloaded}
    counted.full = False
    crowd.submit("3")
    assert (await crowd.wait())["3"] is None


async def test_a_commit_that_fails_is_told_to_those_who_waited_for_it(counted: Counted) -> None:
    crowd = Crowd(counted)

    async def call(act: Callable[[Gateway, int], T]) -> T:
        act(counted.gateway, counted.time)
        raise OutcomeOpen("the disk is full", retry_after=1)

    counted.call = call  # type: ignore[method-assign]
    crowd.submit("1")
    crowd.submit("2", to="nobody")
    assert await crowd.wait() == {"1": OutcomeOpen, "2": AddressUnknown}


async def test_a_store_that_does_not_answer_holds_nobody_up(counted: Counted) -> None:
    crowd = Crowd(counted)
    counted.broken = True
    crowd.submit("1")
    assert await crowd.wait() == {"1": StoreBroken}
    counted.broken = False
    crowd.submit("2")
    assert (await crowd.wait())["2"] is None
