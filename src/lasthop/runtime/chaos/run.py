"""One run: messages flow while the schedule breaks things, then everything may arrive, then the
ledger judges."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from lasthop.runtime.chaos.account import read_account
from lasthop.runtime.chaos.chaos_link import ChaosLink
from lasthop.runtime.chaos.fault_schedule import GATEWAY, FaultKind, PlannedFault, draw
from lasthop.runtime.chaos.ledger import ChaosVerdict, Ledger, read_texts
from lasthop.runtime.chaos.report import ChaosReport
from lasthop.runtime.chaos.stage import LOOKING, PUBLISHERS, ChaosPlan, ChaosStage
from lasthop.runtime.demo.beside import beside

IN_TIME = 10.0
"""Seconds after the last fault in which everything that was accepted has to arrive."""

GIVING_UP = 40.0
"""Seconds after the last fault after which what has not arrived is lost."""

SETTLING = 4.0
"""Seconds of a run that are kept for what comes after the last fault."""

ENDING = 20.0
"""Seconds that devices and the gateway have to end when they are asked to."""

LATE = 0.4
"""Seconds by which a delayed link is late, each way."""

MOVED = 3600
"""Seconds by which a clock is moved, ahead or back: what a wrong time zone or summer time does."""

DAMAGED = 3
"""The most pieces that a corrupting link damages."""

MEETING = 5.0
"""Seconds that a fault of a link waits for a connection: there is none while the gateway starts,
and an initiator has one only while it asks."""

PROGRESS_INTERVAL = 10.0
"""Seconds between two lines about the progress."""


class Run:
    """A run on a stage where messages flow."""

    def __init__(self, plan: ChaosPlan, stage: ChaosStage, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._stage = stage
        self._say = say
        self._kinds: Counter[str] = Counter({kind.value: 0 for kind in FaultKind})
        self._max_rss = 0

    async def perform(self) -> ChaosReport:
        """Inject the faults, wait until everything has settled, and judge the result."""
        began = time.monotonic()
        async with beside(self._watch()):
            self._say("faults begin")
            await self._break_things()
            self._say("calm; waiting for what was accepted")
            async with self._counting_in_time() as in_time:
                ledger = await self._wait_for_everything()
            seconds = time.monotonic() - began
            self._look_at_memory()
        self._say("ending")
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDING):
                await self._stage.end()
        return self._report(ledger.judge(self._texts(), in_time), seconds)

    def _texts(self) -> dict[str, list[str]]:
        """Return what the devices have written down."""
        return {name: read_texts(self._stage.output(name)) for name in self._stage.devices}

    async def _watch(self) -> None:
        """Look at the gateway's memory, and say now and then how it goes."""
        said = time.monotonic()
        while True:
            self._look_at_memory()
            if time.monotonic() - said >= PROGRESS_INTERVAL:
                said = time.monotonic()
                arrived = self._stage.counts().total()
                self._say(f"{self._kinds.total()} faults, {arrived} messages at devices")
            await asyncio.sleep(LOOKING)

    def _look_at_memory(self) -> None:
        self._max_rss = max(self._max_rss, self._stage.parties[GATEWAY].most_memory())

    async def _break_things(self) -> None:
        """Do what the schedule says; return when the last fault has ended."""
        kinds = [kind for kind in FaultKind if kind not in self._stage.not_done]
        parties = [name for name in self._stage.parties if name != GATEWAY]
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            seconds = self._plan.seconds - SETTLING
            only = self._stage.only
            for fault in draw(self._plan.seed, seconds, parties, kinds, only=only):
                await asyncio.sleep(max(0.0, fault.at - (time.monotonic() - began)))
                group.create_task(self._do(fault))
        self._stage.calm()

    async def _do(self, fault: PlannedFault) -> None:
        """Do one fault from its beginning to its end, and count it if it met anybody."""
        self._stage.note(f"{fault.kind} {fault.target} for {fault.seconds:.1f} s")
        if fault.kind is FaultKind.DISK_FULL:
            met = await self._fill_disk(fault)
        elif (link := self._stage.links.get(fault.target)) is not None and fault.kind.to_links:
            met = await self._do_to_link(fault, link)
        else:
            met = await self._do_to_process(fault)
        self._kinds[fault.kind.value] += met
        self._stage.note(f"{fault.kind} {fault.target} {'is over' if met else 'met nobody'}")

    async def _fill_disk(self, fault: PlannedFault) -> bool:
        disk = self._stage.disk
        assert disk is not None
        await disk.fill()
        await asyncio.sleep(fault.seconds)
        disk.empty()
        return True

    async def _do_to_process(self, fault: PlannedFault) -> bool:
        party = self._stage.parties[fault.target]
        if fault.kind is FaultKind.KILL:
            self._look_at_memory()
            return party.kill(fault.seconds)
        if fault.kind is FaultKind.CLOCK:
            return await self._move_clock(fault)
        met = party.freeze()
        await asyncio.sleep(fault.seconds)
        party.thaw()
        return met

    async def _move_clock(self, fault: PlannedFault) -> bool:
        clock = self._stage.clocks[fault.target]
        clock.move(MOVED if fault.coin else -MOVED)
        met = self._stage.parties[fault.target].pid is not None
        await asyncio.sleep(fault.seconds)
        clock.move(0)
        return met

    async def _do_to_link(self, fault: PlannedFault, link: ChaosLink) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(MEETING):
                await link.occupied()
        if fault.kind is FaultKind.CUT:
            return link.cut() > 0
        if fault.kind is FaultKind.HALF_CLOSE:
            return link.half_close(towards_device=fault.coin) > 0
        if fault.kind is FaultKind.CORRUPT:
            link.corrupt(DAMAGED)
            await asyncio.sleep(fault.seconds)
            return link.corrupt(0) < DAMAGED
        if fault.kind is FaultKind.DELAY:
            link.late = LATE
        else:
            link.hold()
        await asyncio.sleep(fault.seconds)
        if fault.kind is FaultKind.BLACK_HOLE and fault.coin:
            link.cut()
        link.calm()
        return True

    @asynccontextmanager
    async def _counting_in_time(self) -> AsyncIterator[Counter[str]]:
        """Yield what will hold how many messages each device had when the time was up; it stays
        empty if the context ends before."""
        counts: Counter[str] = Counter()

        async def count() -> None:
            await asyncio.sleep(IN_TIME)
            counts.update(self._stage.counts())

        async with beside(count()):
            yield counts

    async def _wait_for_everything(self) -> Ledger:
        """Wait until publishers know all outcomes and devices have what was accepted, or for as
        long as there is hope; return the publishers' accounts."""
        deadline = time.monotonic() + GIVING_UP
        with suppress(TimeoutError):
            async with asyncio.timeout(GIVING_UP):
                await self._stage.finish_publishers()
        ledger = Ledger()
        for name in PUBLISHERS:
            ledger.add(name, read_account(self._stage.account(name)))
        while not ledger.complete(self._texts()) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(LOOKING)
        return ledger

    def _report(self, verdict: ChaosVerdict, seconds: float) -> ChaosReport:
        return ChaosReport(
            seed=self._plan.seed,
            seconds=round(seconds, 1),
            accepted=verdict.accepted,
            delivered=verdict.delivered,
            refused=verdict.refused,
            lost=verdict.lost,
            duplicated=verdict.duplicated,
            misordered=verdict.misordered,
            untrue=verdict.untrue,
            stuck=verdict.stuck,
            kills=self._kinds[FaultKind.KILL],
            faults=self._kinds.total(),
            kinds=dict(self._kinds),
            ended=self._stage.ended,
            max_rss_mb=round(self._max_rss / 1e6, 1),
            not_done=self._stage.not_done,
            findings=verdict.findings,
        )


async def perform(plan: ChaosPlan, say: Callable[[str], None]) -> ChaosReport:
    """Start everybody, run, and end everybody."""
    async with ChaosStage(plan, say) as stage:
        await stage.flowing()
        return await Run(plan, stage, say).perform()
