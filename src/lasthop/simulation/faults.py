"""Fault schedules: random traffic over bad links between a gateway and devices that keep dying.

All code that runs here is the product itself; only time, links and disks are rehearsed. A schedule
ends when everything that was accepted has its outcome, and is then judged.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import msgspec

from lasthop.clock import DAY, HOUR, MILLISECOND, SECOND, Micros
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.groups.records import GroupRecord
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.names import parse_target
from lasthop.core.preferences.feature import preferences_of
from lasthop.core.session import Session
from lasthop.core.surrogates.waiting import Failing
from lasthop.device.terms import DeviceTerms
from lasthop.events import Event, Kind
from lasthop.message import GATEWAY, Reliability
from lasthop.simulation.device_node import DeviceNode
from lasthop.simulation.disk import MemoryDisk, SqliteDisk
from lasthop.simulation.exchange import ASKED, SERVICE, TOLD, draw_asks, judge_talk
from lasthop.simulation.gateway_node import Disk, GatewayNode
from lasthop.simulation.groups import QUEUE, add_groups, judge_groups
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.interconnects import Thrift, add_interconnects, climate
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.ledger import CommitLedger
from lasthop.simulation.link import Weather
from lasthop.simulation.paused_lanes import LanePauses, add_lanes
from lasthop.simulation.publisher import APP, Publisher
from lasthop.simulation.pulls import add_pulls
from lasthop.simulation.ranked import RANKED, add_ranked
from lasthop.simulation.schedule import LOOSE, Batch, PlannedMessage, Schedule, draw
from lasthop.simulation.streams import (
    DEVICE_WINDOW,
    GATEWAY_WINDOW,
    Flows,
    PlannedStream,
    StreamPublisher,
    draw_streams,
    judge_streams,
)
from lasthop.simulation.surrogates import (
    RehearsedWorker,
    as_sent,
    base,
    draw_trouble,
    judge_surrogate,
    kept_by_surrogate,
    may_be_stopped,
)
from lasthop.simulation.verdict import Fate, RehearsalVerdict, judge
from lasthop.store.base import Store
from lasthop.store.commit import Commit
from lasthop.wire.hop.frames import Credit, Headers

PATIENCE = HOUR // 2
"""Virtual time after which a schedule that has not ended is reported as stuck. The longest
legitimate wait is for a link that died silently: the gateway gives it up after 11 minutes."""

SEGMENT = 250
"""Bytes of a body that still travel in one frame: few, so that every schedule has larger bodies."""

ENOUGH = 2
"""Empty answers in a row after which a user believes that nothing is left to read."""

STORM = 120 * SECOND
"""How long links are bad; then they improve, so that every schedule comes to an end."""


@dataclass(frozen=True, slots=True)
class RehearsalOutcome:
    """The result of one schedule that was run and judged."""

    seed: int
    messages: int
    verdict: RehearsalVerdict
    crashes: int
    commits: int


def run(
    seed: int, *, messages: int = 50, sqlite: bool = False, lanes: bool = False
) -> RehearsalOutcome:
    """Run and judge the schedule with this seed; with `lanes`, gateway and devices use them."""
    schedule = draw(seed, messages=messages)
    add_ranked(schedule)
    add_groups(schedule)
    add_interconnects(schedule)
    add_pulls(schedule)
    if lanes:
        add_lanes(schedule)
    if not sqlite:
        return Rehearsal(schedule, MemoryDisk()).run()
    with tempfile.TemporaryDirectory(prefix="lasthop-faults-") as directory:
        return Rehearsal(schedule, SqliteDisk(Path(directory), Random(seed))).run()


class Rehearsal:
    """One run of one schedule: gateway, devices, publishers and the checks at the end."""

    def __init__(self, schedule: Schedule, disk: Disk) -> None:
        self._schedule = schedule
        self._disk = disk
        self._random = Random(schedule.seed ^ 0x5EED)
        self._kernel = kernel = Kernel()
        self._begin = kernel.now()
        self._ledger = CommitLedger()
        limits = Limits(
            resident=schedule.resident,
            fanout_batch=2,
            window_messages=1024,
            large_commit=4,
            preserve=HOUR,
            segment=SEGMENT,
            stream_window=GATEWAY_WINDOW,
        )
        # A surrogate decides about messages one by one; groups and queues decide themselves.
        self._trouble = None if schedule.memberships else draw_trouble(schedule.seed)
        self._worker: RehearsedWorker | None = None
        if self._trouble is not None:
            self._worker = RehearsedWorker(kernel, Random(schedule.seed), self._trouble)
        served = {} if self._trouble is None else {APP: self._trouble.terms}
        self._undone = False
        self._gateway = GatewayNode(
            kernel,
            self._random,
            disk,
            Identity(
                open_house=True,
                limits=limits,
                surrogates=served,
                lanes=schedule.lanes,
                unordered=frozenset((LOOSE,)),
            ),
            consult=None if self._worker is None else self._worker.consult,
            before_commit=self._dies_before,
            after_commit=self._dies_after,
            started=self._ledger.start_over,
            committed=self._committed,
        )
        if self._worker is not None:
            self._worker.turn = self._gateway.turn
        self._thrift = self._gateway.thrift = Thrift()
        self._devices = {name: self._device(name) for name in schedule.devices}
        self._publishers = {
            source: Publisher(kernel, self._random, self._gateway)
            for source in ("publisher:p", "publisher:q")
        }
        self._asks = draw_asks(schedule) if self._trouble is None else []
        self._last_ask = max((ask.at for ask in self._asks), default=0)
        self._sent_by_devices: set[int] = set()
        self._streams = [] if self._trouble is not None else draw_streams(schedule)
        self._stream_publisher = StreamPublisher(kernel, self._random, self._gateway, APP)
        self._flows = {name: Flows(self._random) for name in schedule.devices}
        for name, device in self._devices.items():
            device.flows = self._flows[name] if self._streams else None
        self._start = self._begin
        self._given_up: set[str] = set()
        self._next_look: dict[str, Micros] = {}
        self._playing = False
        self._forgiven: set[int] = set()
        """Numbers of messages that a backup does not know: their outcomes are not judged."""

    def run(self) -> RehearsalOutcome:
        schedule = self._schedule
        self._gateway.start()
        for device in self._devices.values():
            device.start()
        for name in schedule.topic_members:
            self._devices[name].subscribe("news")
        for name, preferences in schedule.plans.items():
            self._devices[name].prefer(preferences)
        for name, terms in schedule.ranked.items():
            self._devices[name].subscribe(RANKED, terms)
        self._form_groups()
        if any(ask.expects.target.startswith("service:") for ask in self._asks):
            for device in self._devices.values():
                device.offer(SERVICE)
        # Every device is known before anything is sent to it.
        introduced = self._kernel.run(until=self._introduced, limit=PATIENCE)
        start = self._start = self._kernel.now()
        self._playing = True
        if schedule.lanes:
            LanePauses(self._kernel, schedule.seed, self._gateway, self._sessions).begin()
        for batch in schedule.batches:
            self._kernel.at(start + batch.at, partial(self._publish, batch))
        for move in schedule.moves:
            device = self._devices[move.device]
            act = partial(device.move, move.target, joins=move.joins)
            self._kernel.at(start + move.at, act)
        for plan in self._streams:
            self._kernel.at(start + plan.at, partial(self._stream, plan))
        for look in schedule.looks:
            device = self._devices[look.device]
            self._kernel.at(start + look.at, partial(device.reader.look, RANKED, look.wanted))
        for at, name in schedule.switches:
            self._kernel.at(start + at, self._devices[name].links.switch)
        for ask in self._asks:
            self._kernel.at(start + ask.at, partial(self._devices[ask.device].ask, ask))
        through = introduced and self._kernel.run(until=self._through, limit=PATIENCE)
        verdict = self._judge()
        if not through:
            verdict.add("lost", "the rehearsal is stuck")
        devices = self._devices.values()
        return RehearsalOutcome(
            schedule.seed,
            schedule.messages,
            verdict,
            self._gateway.crashes
            + sum(device.crashes for device in devices)
            + (0 if self._worker is None else self._worker.crashes),
            self._gateway.commits + sum(device.commits for device in devices),
        )

    def _device(self, name: str) -> DeviceNode:
        schedule = self._schedule
        terms = DeviceTerms(
            app=APP,
            name=name,
            window=Credit(schedule.window, 1 << 20),
            storage=schedule.storage.get(name),
            segment=SEGMENT,
            stream_window=DEVICE_WINDOW,
            lanes=schedule.lanes,
        )
        if schedule.tight:
            terms = msgspec.structs.replace(terms, inbox_messages=schedule.window)
        return DeviceNode(
            self._kernel,
            self._random,
            terms,
            self._gateway,
            transactional=name not in schedule.plain,
            weather=self._weather,
            crash_at=schedule.device_crashes.get(name, set()),
            another=schedule.another,
        )

    def _weather(self) -> tuple[Weather, Interconnect]:
        kind = self._random.choice(self._schedule.kinds)
        if self._kernel.now() - self._begin > STORM:
            return Weather(), kind
        return climate(self._random, kind), kind

    def _dies_before(self, n: int) -> bool:
        return self._dies(n, self._schedule.crash_before)

    def _dies_after(self, n: int) -> bool:
        return self._dies(n, self._schedule.crash_after)

    def _dies(self, n: int, when: set[int]) -> bool:
        if n not in when:
            return False
        when.discard(n)
        if isinstance(self._disk, MemoryDisk) and self._disk.has_backup:
            self._go_back(self._disk)
        self._kernel.after(self._random.randint(0, 3 * SECOND), self._gateway.start)
        return True

    def _committed(self, commit: Commit) -> None:
        self._ledger.note(commit)
        at = self._schedule.copy_at
        if (
            at is not None
            and commit.n >= at
            and self._playing
            and isinstance(self._disk, MemoryDisk)
        ):
            self._schedule.copy_at = None
            self._disk.take_backup()

    def _go_back(self, disk: MemoryDisk) -> None:
        """Exempt from judgement what the backup cannot know, since the gateway will restart with
        it."""
        self._undone = True
        bodies = disk.backup_bodies()
        known = {base(int(body.rstrip(b"."))) for body in bodies if body[:1].isdigit()}
        for plan in (plan for batch in self._schedule.batches for plan in batch.plans):
            # Messages that were cancelled or expired after the backup are open again.
            unsteady = (plan.ttl, plan.cancel_after, plan.replace_key) != (None, None, None)
            # Messages that were seen or reranked after the backup may be open again.
            unsteady = unsteady or plan.target in (f"topic:{RANKED}", QUEUE) or plan.binding > 0
            if self._trouble is not None:
                unsteady = unsteady or may_be_stopped(self._trouble, plan.number, self._devices)
            if plan.number not in known or unsteady:
                self._forgiven.add(plan.number)
        for publisher in self._publishers.values():
            publisher.cancelled.clear()

    def _form_groups(self) -> None:
        schedule = self._schedule
        if schedule.memberships:
            record = GroupRecord(patience=schedule.patience, prefetch=schedule.prefetch)

            def make(gateway: Gateway, now: Micros) -> None:
                gateway.groups.make(APP, parse_target(QUEUE), record, now)

            self._gateway.act(make, lambda: None)
        for target, names in schedule.memberships.items():
            for name in names:
                self._devices[name].move(target, joins=True)

    def _introduced(self) -> bool:
        store = self._gateway.store
        if store is None:
            return False
        known = all(store.device(APP, name) for name in self._devices)
        return known and all(device.quiet for device in self._devices.values())

    def _publish(self, batch: Batch) -> None:
        source = batch.plans[0].source
        if source in self._publishers:
            self._publishers[source].publish(batch.plans)
            return
        device = self._devices[source.removeprefix("device:")]
        for plan in batch.plans:
            device.send(plan.body, plan.target, _headers(plan))
            # A message with a deadline may reach the gateway too late; the gateway then says so.
            if plan.ttl is None and plan.reliability is not Reliability.BEST_EFFORT:
                self._sent_by_devices.add(plan.number)

    def _through(self) -> bool:
        if self._kernel.now() <= self._start + self._schedule.batches[-1].at:
            return False
        gateway = self._gateway.gateway
        # This is checked after every action, so the most frequent answer comes first; messages of
        # the ranked topic are open until a user looks.
        if gateway is None or (gateway.deliveries.items and not self._schedule.ranked):
            return False
        if self._kernel.now() <= self._start + self._last_ask:
            return False
        if any(publisher.busy for publisher in self._publishers.values()):
            return False
        if not all(device.quiet for device in self._devices.values()):
            return False
        if not self._streamed_to_the_end():
            return False
        if not self._read_to_the_end():
            return False
        return self._gateway.store is not None and not gateway.deliveries.items and gateway.idle

    def _stream(self, plan: PlannedStream) -> None:
        if plan.sender:
            self._flows[plan.sender].send(plan)
            self._kernel.after(0, self._devices[plan.sender].stir)
        else:
            self._stream_publisher.send(plan)

    def _streamed_to_the_end(self) -> bool:
        """Return whether all streams have ended. A backup does not know what was accepted after it,
        so after going back to it streams may be given up."""
        if not self._streams or self._undone:
            self._stream_publisher.given_up = True
            return True
        if self._kernel.now() <= self._start + max(plan.at for plan in self._streams):
            return False
        if self._stream_publisher.busy or any(flows.busy for flows in self._flows.values()):
            return False
        sent = self._sent_streams()
        return all(name in self._flows[plan.receiver].ended for name, plan in sent.items())

    def _sent_streams(self) -> dict[str, PlannedStream]:
        by_devices = {plan.name: plan for plan in self._streams if plan.sender}
        return by_devices | self._stream_publisher.sent

    def _read_to_the_end(self) -> bool:
        """Let the users of the ranked topic read on until nothing is left, then unsubscribe; return
        whether all have."""
        looks = self._schedule.looks
        if looks and self._kernel.now() <= self._start + max(look.at for look in looks):
            return False
        for name in self._schedule.ranked:
            device = self._devices[name]
            if device.reader.looking or name in self._given_up:
                continue
            if name not in self._next_look:
                # Answers that were empty while messages still came say nothing about what is left
                # now.
                device.reader.empty_looks = 0
            if self._kernel.now() < self._next_look.get(name, 0):
                return False
            self._next_look[name] = self._kernel.now() + 2 * SECOND
            # A late answer to an earlier look may have left something on the device. Messages that
            # a backup does not know stay there, since the gateway cannot say what they are worth.
            unknown = self._undone and device.reader.empty_looks > 2 * ENOUGH
            if device.reader.empty_looks < ENOUGH or (device.reader.unread(RANKED) and not unknown):
                device.reader.look(RANKED, None)
            elif self._on_its_way(name):
                continue  # Shown unasked, so a look does not find it.
            else:
                self._given_up.add(name)
                device.unsubscribe(RANKED)
            return False
        return len(self._given_up) == len(self._schedule.ranked)

    def _on_its_way(self, name: str) -> bool:
        """Return whether the gateway has something for this device that only waits for its turn or
        for the device's ack."""
        gateway = self._gateway.gateway
        if gateway is None:
            return True
        session = gateway.deliveries.named(APP, name)
        device_preferences = preferences_of(session)
        held = device_preferences is not None and bool(
            device_preferences.held or device_preferences.parked
        )
        return held or session.waits or session.in_flight

    def _sessions(self) -> list[Session]:
        gateway = self._gateway.gateway
        return [] if gateway is None else gateway.deliveries.sessions()

    def _judge(self) -> RehearsalVerdict:
        plans = {w.number: w for batch in self._schedule.batches for w in batch.plans}
        accepted = set(self._sent_by_devices)
        if self._trouble is not None:
            accepted = kept_by_surrogate(self._trouble, accepted, plans)
        fates = self._fates()
        had = {name: device.had() for name, device in self._devices.items()}
        verdict = judge(
            plans,
            accepted.union(*(p.accepted for p in self._publishers.values())) - self._forgiven,
            [fate for fate in as_sent(fates) if fate.number not in self._forgiven],
            {
                name: [a for a in as_sent(arrivals) if a.number not in self._forgiven]
                for name, arrivals in had.items()
            },
            plain=self._schedule.plain,
            ranks=self._ranks(plans),
        )
        if self._gateway.store is not None:
            self._ledger.close(self._gateway.store)
        for problem in (*self._ledger.problems, *self._thrift.problems):
            verdict.add("untrue", problem)
        for publisher in self._publishers.values():
            cancelled = publisher.cancelled - self._forgiven
            for name, device in self._devices.items():
                for number in cancelled.intersection(a.number for a in as_sent(device.had())):
                    verdict.add("untrue", f"{name} had {number}, which was cancelled")
        self._judge_groups(verdict, plans)
        if not self._undone:
            judge_streams(verdict, self._sent_streams(), self._flows)
        self._judge_budgets(verdict)
        for name, device in self._devices.items():
            plain = name in self._schedule.plain
            judge_talk(verdict, name, device.talk, crashes=device.crashes, plain=plain)
        expected = {"expired"}
        gateway, store = self._gateway.gateway, self._gateway.store
        if self._trouble is not None and gateway is not None and store is not None:
            post = gateway.surrogates.post(APP)
            assert post is not None
            ranked = self._ranks(plans)
            judge_surrogate(
                verdict,
                store,
                post.state,
                [fate for fate in fates if fate.number not in ranked],
                {n: [a for a in arrived if a.number not in ranked] for n, arrived in had.items()},
                trouble=self._trouble,
                plain=self._schedule.plain,
                undone=self._undone,
            )
            if self._trouble.terms.failing is Failing.REFUSE:
                expected.add("surrogate_failed")
        if any(plan.pull for plan in plans.values()):
            # The body came by itself, since the device had begun to pull it before, and was
            # finished.
            expected.add("not_found")
        for device in self._devices.values():
            for refusal in device.refused:
                # A backup does not know which messages may be claimed.
                forgiven = refusal.code == "not_found" and self._forgiven
                if refusal.code not in expected and not forgiven:
                    verdict.add("untrue", f"the gateway refused: {refusal.detail}")
        return verdict

    def _judge_groups(self, verdict: RehearsalVerdict, plans: dict[int, PlannedMessage]) -> None:
        store = self._gateway.store
        if not self._schedule.memberships or store is None:
            return
        judge_groups(
            verdict,
            plans,
            [fate for fate in self._fates() if fate.number not in self._forgiven],
            {name: device.had() for name, device in self._devices.items()},
            {name: device.claims for name, device in self._devices.items()},
            {name: device.links.seen for name, device in self._devices.items()},
            self._events(store),
        )

    def _events(self, store: Store) -> Iterator[Event]:
        for page in store.events(0, 1 << 40):
            for line in page.lines.splitlines():
                yield msgspec.json.decode(line, type=Event)

    def _judge_budgets(self, verdict: RehearsalVerdict) -> None:
        """Check that no device was sent more over a link in a day than its limits allow."""
        self._judge_spending(verdict)
        store = self._gateway.store
        if store is None or self._forgiven:
            return  # A backup does not know what was spent after it.
        sent: Counter[tuple[str, str, int]] = Counter()
        for event in self._events(store):
            if event.kind == Kind.TRANSMITTED:
                sent[event.dev, event.link, event.t // DAY] += 1
        for name, device in self._devices.items():
            for (link, day), count in device.links.carried.items():
                # Messages that left just before a crash are not in the log.
                sent[name, link, day] = max(count, sent[name, link, day])
        for name, plans in self._schedule.plans.items():
            for limit in plans.limits:
                for (who, link, _), count in sent.items():
                    if (who, link) == (name, limit.link) and count > limit.amount:
                        told = f"{name} was sent {count} messages over {link}"
                        verdict.add("untrue", f"{told}, which may carry {limit.amount} a day")

    def _judge_spending(self, verdict: RehearsalVerdict) -> None:
        """Check that no device has sent more over a link in a day than its limits allow."""
        for name, plans in self._schedule.plans.items():
            sent = self._devices[name].links.sent_over
            for limit in plans.limits:
                for (link, _), count in sent.items():
                    if link == limit.link and count > limit.amount:
                        told = f"{name} has sent {count} messages over {link}"
                        verdict.add("untrue", f"{told}, which may carry {limit.amount} a day")

    def _ranks(self, plans: dict[int, PlannedMessage]) -> dict[int, float]:
        """Return the final rank of every message of the ranked topic."""
        ranks = {n: plan.rank for n, plan in plans.items() if plan.target == f"topic:{RANKED}"}
        for publisher in self._publishers.values():
            ranks |= publisher.ranks
        return ranks

    def _fates(self) -> list[Fate]:
        store: Store | None = self._gateway.store
        gateway = self._gateway.gateway
        if store is None or gateway is None:
            return []
        fates = []
        for row in store.all_deliveries():
            message = store.messages([row.message])[row.message]
            own = message.source == GATEWAY or message.stream
            if own or message.body[:1] in (ASKED, TOLD):
                continue  # The gateway's own answer, a conversation or a stream.
            device = gateway.registry.numbered(row.device)
            assert device is not None
            number = int(message.body.rstrip(b"."))
            fates.append(Fate(number, device.name, row.message, State(row.state)))
        return fates


def _headers(plan: PlannedMessage) -> Headers:
    return Headers(
        to=None if plan.target.startswith("topic:") else plan.target,
        priority=plan.priority,
        reliability=plan.reliability,
        deliver_within=plan.ttl // MILLISECOND if plan.ttl is not None else None,
        binding=plan.binding,
    )
