"""Fault schedules for the Push Proxy Gateway: an initiator that is away for an hour, devices that
never come, a gateway that dies between any two steps."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from lasthop.clock import HOUR, SECOND, Micros
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.limits import Limits
from lasthop.core.pushes.push_ids import DuplicatePush
from lasthop.core.registry import DeviceRecord
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Conflict, NotFound
from lasthop.message import Target, TargetKind
from lasthop.simulation.device_node import DeviceNode
from lasthop.simulation.disk import MemoryDisk, SqliteDisk
from lasthop.simulation.faults import STORM, RehearsalOutcome
from lasthop.simulation.gateway_node import Disk, GatewayNode
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.ledger import CommitLedger
from lasthop.simulation.link import Weather
from lasthop.simulation.pap.initiator import SOURCE, InitiatorNode
from lasthop.simulation.pap.schedule import SPAN, PapSchedule, draw
from lasthop.simulation.pap.verdict import judge
from lasthop.simulation.publisher import APP
from lasthop.simulation.schedule import weather
from lasthop.simulation.verdict import RehearsalVerdict
from lasthop.wire.hop.frames import Credit
from lasthop.wire.pap.answers import PapAnswer

PATIENCE = 6 * HOUR
"""Virtual time after which a schedule is stuck: an initiator may be away for an hour, and is then
tried every half hour."""


def run(seed: int, *, messages: int = 20, sqlite: bool = False) -> RehearsalOutcome:
    """Run and judge the schedule with this seed."""
    schedule = draw(seed, pushes=messages)
    if not sqlite:
        return PapRehearsal(schedule, MemoryDisk()).run()
    with tempfile.TemporaryDirectory(prefix="lasthop-pap-faults-") as directory:
        return PapRehearsal(schedule, SqliteDisk(Path(directory), Random(seed))).run()


class PapRehearsal:
    """One run of one PAP schedule: gateway, devices, initiator and the checks at the end."""

    def __init__(self, schedule: PapSchedule, disk: Disk) -> None:
        self._schedule = schedule
        self._random = Random(schedule.seed ^ 0x5EED)
        self._kernel = kernel = Kernel()
        self._start = kernel.now()
        self._ledger = CommitLedger()
        self._gateway = GatewayNode(
            kernel,
            self._random,
            disk,
            Identity(open_house=True, limits=Limits(fanout_batch=2, preserve=HOUR)),
            before_commit=partial(self._dies, schedule.crash_before),
            after_commit=partial(self._dies, schedule.crash_after),
            started=self._ledger.start_over,
            committed=self._ledger.note,
            tell=self._tell,
        )
        self._initiator = InitiatorNode(kernel, self._random, self._gateway, schedule)
        self._devices = {name: self._device(name) for name in schedule.devices}
        self._ready: set[str] = set()
        self._removed: set[str] = set()

    def run(self) -> RehearsalOutcome:
        schedule, kernel = self._schedule, self._kernel
        self._gateway.start()
        for device in self._devices.values():
            device.start()
        for name in schedule.members:
            if name in self._devices:
                self._devices[name].subscribe("news")
        introduced = kernel.run(until=self._introduced, limit=HOUR)
        self._insist("settled", self._settle, self._ready)
        introduced = introduced and kernel.run(until=lambda: bool(self._ready), limit=HOUR)
        begin = kernel.now()
        self._initiator.begin(schedule.plans)
        for ghost, at in schedule.removed_at.items():
            remove = partial(self._insist, ghost, partial(_remove, ghost), self._removed)
            kernel.at(begin + at, remove)
        self._end = begin + 2 * SPAN
        through = introduced and kernel.run(until=self._through, limit=PATIENCE)
        return self._outcome(stuck=not through)

    def _tell(self, content_type: str, body: bytes, answered: Callable[[PapAnswer], None]) -> None:
        self._initiator.told(content_type, body, answered)

    def _device(self, name: str) -> DeviceNode:
        return DeviceNode(
            self._kernel,
            self._random,
            DeviceTerms(app=APP, name=name, window=Credit(64, 1 << 20)),
            self._gateway,
            transactional=True,
            weather=self._weather,
            crash_at=self._schedule.device_crashes.get(name, set()),
        )

    def _weather(self) -> tuple[Weather, Interconnect]:
        if self._kernel.now() - self._start > STORM:
            return Weather(), Interconnect.STREAM
        return weather(self._random, stream=True), Interconnect.STREAM

    def _dies(self, when: set[int], n: int) -> bool:
        if n not in when:
            return False
        when.discard(n)
        self._kernel.after(self._random.randint(0, 3 * SECOND), self._gateway.start)
        return True

    def _introduced(self) -> bool:
        store = self._gateway.store
        known = store is not None and all(store.device(APP, name) for name in self._devices)
        return known and all(device.quiet for device in self._devices.values())

    def _insist(self, name: str, act: Callable[[Gateway, Micros], None], done: set[str]) -> None:
        """Repeat an administrator's request until it is answered."""
        if name in done:
            return
        self._gateway.act(act, lambda: done.add(name))
        self._kernel.after(SECOND, partial(self._insist, name, act, done))

    def _settle(self, gateway: Gateway, now: Micros) -> None:
        """Assign devices to users, and register those that never come; repeating this does no
        harm."""
        for user, names in self._schedule.users.items():
            for name in names:
                if gateway.registry.find(APP, name) is None:
                    topics = ["news"] if name in self._schedule.members else []
                    record = DeviceRecord(user=user, subscriptions=topics)
                    gateway.admin.register(APP, name, record, now)
                else:
                    gateway.admin.amend(APP, name, now, user=user)
        gateway.pushes.point(APP, "USER:group", Target(TargetKind.TOPIC, "news"))

    def _through(self) -> bool:
        gateway = self._gateway.gateway
        if self._kernel.now() < self._end or self._initiator.busy or gateway is None:
            return False
        if len(self._removed) < len(self._schedule.removed_at):
            return False
        if not all(device.quiet for device in self._devices.values()):
            return False
        return not gateway.deliveries.items and not gateway.notifications and gateway.idle

    def _outcome(self, *, stuck: bool) -> RehearsalOutcome:
        schedule = self._schedule
        store = self._gateway.store
        if store is None:
            verdict = RehearsalVerdict()
        else:
            had = {name: device.had() for name, device in self._devices.items()}
            verdict = judge(schedule, self._initiator.memory, store, had)
            self._ledger.close(store)
            self._judge_push_ids(verdict)
        if stuck:
            verdict.add("lost", "the rehearsal is stuck")
        for problem in self._ledger.problems:
            verdict.add("untrue", problem)
        return RehearsalOutcome(
            schedule.seed,
            len(schedule.plans),
            verdict,
            self._gateway.crashes + sum(d.crashes for d in self._devices.values()),
            self._gateway.commits + sum(d.commits for d in self._devices.values()),
        )

    def _judge_push_ids(self, verdict: RehearsalVerdict) -> None:
        """Check that no push-id that was accepted is accepted again."""
        gateway = self._gateway.gateway
        if gateway is None:
            return
        now = self._kernel.now()
        for plan in self._schedule.plans:
            if plan.number in self._initiator.memory.accepted:
                order = self._initiator.order(plan, now)
                try:
                    gateway.pushes.submit(APP, SOURCE, order, now)
                except DuplicatePush:
                    continue
                verdict.add("duplicated", f"the push-id of {plan.number} was taken twice")


def _remove(name: str, gateway: Gateway, now: Micros) -> None:
    try:
        gateway.admin.remove(APP, name, now)
    except (NotFound, Conflict):
        return
