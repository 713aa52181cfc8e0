"""Groups and queues by any sequence of events: devices that come and go, acknowledge and claim,
publishers that cancel, a gateway that dies between any two commits.

The devices here are as good as the protocol asks: they never forget what they acknowledged. What
they show is held against what the gateway says in the end.

About `core/groups/`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lasthop.clock import DAY, SECOND
from lasthop.core.groups.decider import Standing
from lasthop.core.groups.records import GroupRecord
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.message import Binding
from lasthop.store.groups import GroupMessageRow
from lasthop.wire.hop.decisions import GroupVerdict, decode_decision
from lasthop.wire.hop.frames import ALL_FEATURES, Ack, Headers, MessageFrame, Operation, Skip
from tests.core.groups.crew import CREW, JOBS
from tests.core.rig import APP, Rig, to

NAMES = ("one", "two", "three")
name = st.sampled_from(NAMES)


class Puppet:
    """A device: what it has received in order, holds, and has shown."""

    def __init__(self) -> None:
        self.channel = 0
        self.read = 0
        self.received = 0
        self.own = 0
        self.waiting: dict[int, MessageFrame | Skip] = {}
        self.held: set[int] = set()
        self.shown: list[tuple[int, bool]] = []
        self.granted: dict[int, bool] = {}
        self.asked: dict[int, int] = {}
        self.known: set[int] = set()

    def take(self, frames: list[object]) -> None:
        """Take in what came, in the order of numbers."""
        for frame in frames:
            if isinstance(frame, MessageFrame) and frame.seq is not None:
                self.waiting.setdefault(frame.seq, frame)
            elif isinstance(frame, Skip):
                for seq in range(frame.first, frame.first + frame.count):
                    self.waiting.setdefault(seq, frame)
        while (frame := self.waiting.pop(self.received, None)) is not None:
            self.received += 1
            if isinstance(frame, MessageFrame):
                self._follow(frame)
        for seq in [seq for seq in self.waiting if seq < self.received]:
            del self.waiting[seq]

    def _follow(self, frame: MessageFrame) -> None:
        headers, key = frame.headers or Headers(), frame.key or 0
        if headers.operation == Operation.DECISION:
            self._decide(headers.in_reply_to or 0, frame.body)
        elif key in self.known:
            return
        elif headers.binding is Binding.ATOMIC:
            self.known.add(key)
            self.held.add(key)
        else:
            self.known.add(key)
            self.shown.append((key, headers.redelivered))

    def _decide(self, about: int, body: bytes) -> None:
        verdict = decode_decision(body).verdict
        if verdict is GroupVerdict.RELEASE and about in self.held:
            self.held.discard(about)
            self.shown.append((about, False))
        elif verdict is GroupVerdict.ABORT:
            self.held.discard(about)
        elif verdict in (GroupVerdict.GRANT, GroupVerdict.DENY):
            key, granted = self.asked[about], verdict is GroupVerdict.GRANT
            assert self.granted.setdefault(key, granted) == granted, "yes and no"


class Groups(RuleBasedStateMachine):
    """One gateway, three devices, one group and one queue."""

    @initialize()
    def begin(self) -> None:
        self.rig = Rig(Limits(fanout_batch=2))
        self.puppets = {name: Puppet() for name in NAMES}
        self.atomic: list[int] = []
        self.claimable: list[int] = []
        self.jobs: list[int] = []
        self.cancelled: set[int] = set()
        terms = GroupRecord(patience=5 * SECOND, prefetch=2)
        self.rig.gateway.groups.make(APP, JOBS, terms, self.rig.now)
        for device in NAMES:
            self.connect(device)
            self.rig.gateway.groups.join(APP, device, CREW, self.rig.now)
            self.rig.gateway.groups.join(APP, device, JOBS, self.rig.now)
        self.rig.run()

    # Devices.

    @rule(name=name)
    def connect(self, name: str) -> None:
        puppet, rig = self.puppets[name], self.rig
        claims: dict[str, Any] = {}
        if puppet.channel:
            welcome = next(
                rig.welcome(channel)
                for channel in sorted(rig.sent, reverse=True)
                if rig.names[channel] == name and rig.sent[channel]
            )
            claims = {"incarnation": welcome.incarnation, "epoch": welcome.epoch}
            claims |= {"received": puppet.received, "delivered": puppet.received}
        puppet.waiting = {}
        puppet.read = 0
        puppet.channel = rig.connect(name, features=int(ALL_FEATURES), **claims)

    @rule(name=name)
    def lose(self, name: str) -> None:
        self.rig.lose(self.puppets[name].channel)

    @rule(name=name, acknowledge=st.booleans())
    def hear(self, name: str, acknowledge: bool) -> None:
        """The device takes in what was sent to it, and may say so."""
        puppet = self.puppets[name]
        frames = self.rig.sent.get(puppet.channel, [])
        puppet.take(list(frames[puppet.read :]))
        puppet.read = len(frames)
        for key, _ in puppet.shown:
            if key in self.atomic:
                assert all(key in other.known for other in self.puppets.values()), "too early"
        if acknowledge and frames:
            self.rig.hear(puppet.channel, Ack(puppet.received, puppet.received))

    # Publishers.

    @rule(seconds=st.integers(1, 30))
    def send_atomic(self, seconds: int) -> None:
        before = self.rig.now + seconds * SECOND
        message = to("group:crew", binding=Binding.ATOMIC, deliver_before=before)
        self.atomic += self.rig.publish(message)
        self.rig.run()

    @rule()
    def send_claimable(self) -> None:
        self.claimable += self.rig.publish(to("group:crew", binding=Binding.CLAIM))
        self.rig.run()

    @rule()
    def send_job(self) -> None:
        self.jobs += self.rig.publish(to("queue:jobs"))
        self.rig.run()

    @precondition(lambda self: self.atomic or self.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.atomic + self.jobs))
        answer = self.rig.gateway.cancel(APP, key, self.rig.now)
        if answer is not None and answer.taken_back:
            assert not answer.too_late
            self.cancelled.add(key)
        self.rig.run()

    @precondition(lambda self: any(p.shown for p in self.puppets.values()))
    @rule(names=st.permutations(NAMES), data=st.data())
    def claim(self, names: list[str], data: st.DataObject) -> None:
        """Everybody who is there and has seen a message claims it, in some order."""
        shown = {key for puppet in self.puppets.values() for key, _ in puppet.shown}
        keys = [key for key in self.claimable if key in shown]
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        for device in names:
            puppet = self.puppets[device]
            session = self.rig.gateway.deliveries.named(APP, device)
            there = session.greeted and session.channel == puppet.channel
            if there and any(key == seen for seen, _ in puppet.shown):
                self._claim(puppet, session.lane.inbound.received, key)

    def _claim(self, puppet: Puppet, number: int, key: int) -> None:
        puppet.own += 1
        puppet.asked[puppet.own] = key
        headers = Headers(operation=Operation.CLAIM, in_reply_to=key)
        self.rig.hear(puppet.channel, MessageFrame(number, puppet.own, None, headers, b""))

    # Time, and the gateway.

    @rule(seconds=st.integers(1, 20))
    def pass_time(self, seconds: int) -> None:
        self.rig.pass_time(seconds * SECOND)

    @rule(commits=st.integers(0, 2))
    def crash(self, commits: int) -> None:
        self.rig.run_commits(commits)
        self.rig.crash()
        self.rig.run()

    # In the end.

    def teardown(self) -> None:
        if not hasattr(self, "rig"):
            return
        for _ in range(6):
            for device in NAMES:
                self.connect(device)
                self.hear(device, acknowledge=True)
            self.pass_time(10)
            for device in NAMES:
                self.hear(device, acknowledge=True)
        shown: dict[int, list[tuple[str, bool]]] = defaultdict(list)
        for device, puppet in self.puppets.items():
            for key, marked in puppet.shown:
                shown[key].append((device, marked))
        for key in self.atomic:
            who = {device for device, _ in shown[key]}
            states = {State(row.state) for row in self.rig.store.deliveries(key)}
            assert who in (set(), set(NAMES)), (key, who)
            assert states <= ({State.DELIVERED} if who else _UNSEEN), (key, states)
        for key in self.claimable:
            winners = [n for n, puppet in self.puppets.items() if puppet.granted.get(key)]
            row = self.rig.store.find(GroupMessageRow, [key])[key]
            assert len(winners) <= 1
            if winners:
                assert row.state == Standing.CLAIMED
                assert row.device == self.rig.gateway.registry.named(APP, winners[0]).number
        for key in self.jobs:
            if key in self.cancelled:
                continue
            assert shown[key], "a job that nobody has done"
            assert sum(not marked for _, marked in shown[key]) <= 1
        for key in self.cancelled:
            assert not shown[key]
        assert not self.rig.gateway.deliveries.items
        self.rig.pass_time(8 * DAY)
        assert not self.rig.gateway.groups._claims


_UNSEEN = {State.ABORTED, State.CANCELLED, State.EXPIRED}

TestGroups = Groups.TestCase
TestGroups.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
