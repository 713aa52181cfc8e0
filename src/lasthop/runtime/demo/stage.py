"""Runs the steps of the demo with a gateway, a fleet of devices and publishers.

    before ─▶ learn (the play goes on) ─▶ after ─▶ count ─▶ report ─▶ go on until stopped

*Before* and *after* run the same script; in between the learned policies are switched on. If
that takes longer than two minutes, a preliminary report comes first, and the rest later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lasthop.clock import SECOND, Micros
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.demo import script
from lasthop.runtime.demo.beside import beside
from lasthop.runtime.demo.counting import Act, Findings, count_lost, make_report
from lasthop.runtime.demo.fleet import Fleet
from lasthop.runtime.demo.gateway import GatewayProcess
from lasthop.runtime.demo.learning import DemoLearning, Learning
from lasthop.runtime.demo.ledger import DemoLedger
from lasthop.runtime.demo.play import Cast
from lasthop.runtime.demo.publishers import PapInitiator, RestService
from lasthop.runtime.demo.report import DemoReport, LearningReport
from lasthop.runtime.demo.script import LONGEST_LIFE, Script
from lasthop.runtime.failure import Failure

ACT = 36.0
"""The length of a run in seconds: two runs and the learning between them take two minutes on an
idle machine."""

LEAD = LONGEST_LIFE
"""Seconds at the beginning of a run whose messages are not counted, because devices still hold
messages that were forwarded before the run."""

SHORTEST_ACT = LEAD + LONGEST_LIFE + 6.0
"""The shortest run, in seconds, that is long enough for a comparison."""

COUNTING = 4.0
"""Seconds of the demo's duration that are reserved for counting."""

DRAIN = 20.0
"""Seconds after which the gateway is asked about messages that have not arrived."""

REPORT_AFTER = 120.0
"""Seconds after which a report is printed, even if it is not complete."""

HEAD_START = 6.0
"""Seconds before the end of the first run at which learning starts: Spark takes about this long to
start, and reads the log only afterwards."""

LOADING = 30.0
"""Seconds within which the gateway must load a new policy."""

INTERLUDE = 20.0
"""The length in seconds of the scripts that are played while nothing is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """The options with which the demo was started."""

    data: Path
    scratch: Path
    """The directory for the demo's temporary files."""
    devices: int
    seconds: float | None
    """The duration in seconds, from the moment at which all devices are connected; None to go on
    until the demo is stopped."""
    http: str | None = None
    tcp: str | None = None
    seed: int = 1
    no_learning: str = ""
    """The reason why nothing should be learned; empty if the demo should learn."""


class Stage:
    """A running demo: the gateway, the devices, the publishers and the ledger."""

    def __init__(
        self,
        plan: DemoPlan,
        gateway: GatewayProcess,
        cast: Cast,
        ledger: DemoLedger,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self.gateway = gateway
        self.cast = cast
        self.ledger = ledger
        self._say = say
        self._clock = SystemClock()
        self._began = time.monotonic()
        self._random = Random(plan.seed)
        self._people = [member.person for member in cast.fleet.members]
        self._learning = Learning(plan.data, plan.scratch / "spark", say)
        self._learned: DemoLearning | None = None
        self._reason = plan.no_learning
        self._before: Act | None = None
        self._after: Act | None = None

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    @property
    def _left(self) -> float:
        """Seconds that are left until the counting."""
        if self._plan.seconds is None:
            return float("inf")
        return self._plan.seconds - COUNTING - self.elapsed

    async def reports(self) -> AsyncGenerator[DemoReport, None]:
        """Yield the report after all runs; if two minutes pass before that, yield a preliminary
        report first."""
        playing = asyncio.ensure_future(self._perform())
        try:
            if self._plan.seconds is None:
                await asyncio.wait({playing}, timeout=max(0.0, REPORT_AFTER - self.elapsed))
                if not playing.done():
                    yield await self._report(complete=False)
            await playing
            yield await self._count()
        finally:
            playing.cancel()
            with suppress(asyncio.CancelledError, Failure):
                await playing

    async def _perform(self) -> None:
        if self._plan.no_learning:
            length = min(self._left, REPORT_AFTER - COUNTING)
            script = self._script(max(1.0, length))
            self._before = await self._act("playing", script, length, lead=0.0)
            return
        length = ACT if self._plan.seconds is None else min(ACT, 0.3 * self._plan.seconds)
        play = self._script(length)
        learning = asyncio.ensure_future(self._learn(max(0.0, length - HEAD_START)))
        try:
            title = "playing, with the policy that is built in"
            self._before = await self._act(title, play, length)
            self._say("learning")
            await self._go_on_until(learning)
        finally:
            learning.cancel()
            with suppress(asyncio.CancelledError):
                await learning
        if self._learned is not None and not self._reason:
            self._after = await self._play_again(play)
            if self._after is not None:
                self._before = self._before.cut_to(self._after)

    async def _go_on_until(self, over: asyncio.Future[None]) -> None:
        curtain = asyncio.Event()
        over.add_done_callback(lambda _: curtain.set())
        await self.go_on(curtain)
        await over

    async def go_on(self, curtain: asyncio.Event) -> None:
        """Play further scripts until `curtain` is set."""
        while not curtain.is_set():
            await self.cast.play(self._script(INTERLUDE), curtain)

    async def make_tables(self) -> None:
        """Make the pipeline's tables for the dashboard, when nothing else needs the pipeline."""
        if self._learned is not None:
            await self._learning.make_tables()

    async def _play_again(self, play: Script) -> Act | None:
        length = min(play.seconds, self._left)
        if length < SHORTEST_ACT:
            assert self._learned is not None
            self._reason = (
                f"learning took {self._learned.seconds:.0f} s, and too little of the time was left"
            )
            return None
        return await self._act("the same again, with what was learned", play, length)

    def _script(self, seconds: float) -> Script:
        return script.write(self._people, seconds, self._random)

    async def _act(self, title: str, play: Script, length: float, *, lead: float = LEAD) -> Act:
        """Play a script for so many seconds, and note when it was."""
        self._say(title)
        on_links = self.cast.bytes_on_links
        began = self._clock.now()
        await self._play(play, length)
        return Act(
            began=began,
            length=_micros(length),
            lead=_micros(lead),
            tail=_micros(LONGEST_LIFE),
            bytes_per_second=(self.cast.bytes_on_links - on_links) / max(length, 1.0),
        )

    async def _play(self, play: Script, length: float) -> None:
        curtain = asyncio.Event()
        loop = asyncio.get_running_loop()
        falling = loop.call_later(max(0.0, length), curtain.set)
        try:
            await self.cast.play(play, curtain)
        finally:
            falling.cancel()

    async def _learn(self, after: float) -> None:
        """Learn while the script goes on, beginning after so many seconds."""
        limit = self._left if self._plan.seconds is not None else None
        try:
            async with asyncio.timeout(limit):
                await asyncio.sleep(after)
                self._learned = await self._learning.run()
                self._say("waiting for the gateway to take what was learned")
                async with asyncio.timeout(LOADING):
                    await self.gateway.policy_loaded.wait()
        except TimeoutError:
            if self._learned is not None:
                self._reason = "the gateway had not taken what was learned in time"
            else:
                self._reason = f"{self._plan.seconds or 0:.0f} seconds were too few for it"
        except Failure as error:
            self._reason = str(error)
        finally:
            await self._learning.stop()

    async def _count(self) -> DemoReport:
        """End all outages, wait until messages have arrived, and make the final report."""
        self._say("counting")
        self.cast.clear_weather()
        deadline = time.monotonic() + DRAIN
        while self.ledger.missing() and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        return await self._report(complete=True)

    async def _report(self, *, complete: bool) -> DemoReport:
        """Make a report of what is known now, while the script may go on."""
        learned = self._learned
        facts = LearningReport(ran=learned is not None, reason=self._reason)
        if learned is not None:
            facts.version, facts.devices = learned.version, learned.devices
            facts.events, facts.seconds = learned.events, learned.seconds
        found = Findings(
            lost=await count_lost(self.ledger, self.cast),
            ledger=self.ledger.copy(),
            learning=facts,
            before=self._before,
            after=self._after,
            seconds=self.elapsed,
            complete=complete,
        )
        return await asyncio.to_thread(make_report, self._plan.data, self.cast, found)

    def following(self) -> Learning | None:
        """Return the `Learning` that tells the gateway that a program reads its log, or None if
        nothing is learned."""
        return None if self._plan.no_learning else self._learning


@asynccontextmanager
async def staged(plan: DemoPlan, say: Callable[[str], None]) -> AsyncIterator[Stage]:
    """Start a gateway, devices and publishers; stop them all at the end of the context."""
    random = Random(plan.seed)
    async with AsyncExitStack() as stack:
        say("starting a gateway")
        gateway = await GatewayProcess.start(plan.data, http=plan.http, tcp=plan.tcp)
        stack.push_async_callback(gateway.stop)
        ledger = DemoLedger()
        say(f"starting {plan.devices} devices")
        fleet = await stack.enter_async_context(
            Fleet(
                script.people(plan.devices, random),
                gateway.for_devices,
                inboxes=plan.scratch / "inboxes",
                ledger=ledger,
                random=random,
            )
        )
        url = gateway.places.http
        cast = Cast(
            fleet,
            editor=RestService(url, ledger),
            shop=RestService(url, ledger),
            herald=RestService(url, ledger),
            initiator=PapInitiator(url, ledger),
        )
        stage = Stage(plan, gateway, cast, ledger, say)
        if (learning := stage.following()) is not None:
            await stack.enter_async_context(beside(learning.keep_following()))
        await stack.enter_async_context(beside(_watch(gateway)))
        yield stage


async def _watch(gateway: GatewayProcess) -> None:
    raise Failure(f"the gateway ended: {await gateway.ended()}")


def _micros(seconds: float) -> Micros:
    return round(seconds * SECOND)
