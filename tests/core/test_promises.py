"""Whatever happens, in whatever order: the promises hold after every step.

Publishers, devices, a store that takes its time, crashes and a clock that jumps, all at random. A
device here is as forgetful and as honest as a real one: it remembers what it has shown, says what
it has received, and drops what is late.

About `core/gateway.py`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lasthop.clock import DAY, SECOND
from lasthop.core.gateway import Submission
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.registry import DeviceRecord
from lasthop.message import Reliability, key_time
from lasthop.wire.hop.frames import Ack, Credit, Dropped, Frame, MessageFrame, Skip, Welcome
from tests.core.rig import APP, Rig, to

NAMES = ["a", "b", "c", "d", "e"]
UNSEEN = {State.EXPIRED, State.CANCELLED, State.REPLACED, State.UNDELIVERABLE, State.SUPPRESSED}
LIMITS = Limits(fanout_batch=2, resident=12, open_per_device=40)

names = st.sampled_from(NAMES)
rarely = st.sampled_from([False, False, False, True])


class Phone:
    """A device: its lasting memory and its present channel."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.claims: dict[str, Any] = {}
        self.channel = 0
        self.read = 0
        self.shown: list[int] = []
        self.begin()

    def begin(self) -> None:
        self.received = 0
        self.delivered = 0
        self.ahead: dict[int, MessageFrame | None] = {}
        self.waiting: dict[int, MessageFrame | None] = {}
        self.dropped: list[int] = []

    def take(self, frame: Frame, now: int) -> None:
        if isinstance(frame, Welcome):
            if not frame.resumed:
                self.begin()
            self.claims = {"incarnation": frame.incarnation, "epoch": frame.epoch}
        elif isinstance(frame, Skip):
            self._arrived(frame.first, None)
        elif isinstance(frame, MessageFrame) and frame.seq is None:
            assert frame.key is not None
            self.shown.append(frame.key)
        elif isinstance(frame, MessageFrame) and frame.seq is not None:
            self._arrived(frame.seq, frame)

    def _arrived(self, seq: int, frame: MessageFrame | None) -> None:
        if seq >= self.received and seq not in self.ahead:
            self.ahead[seq] = frame
        while self.received in self.ahead:
            self.waiting[self.received] = self.ahead.pop(self.received)
            self.received += 1

    def show(self, most: int, now: int) -> None:
        """The application takes what is next."""
        while self.delivered < self.received and most:
            frame = self.waiting.pop(self.delivered)
            if frame is not None:
                assert frame.key is not None
                within = frame.headers.deliver_within if frame.headers else None
                if within is not None and now >= key_time(frame.key) + within * 1000:
                    if frame.key not in self.shown:
                        self.dropped.append(self.delivered)
                elif frame.key not in self.shown:
                    self.shown.append(frame.key)
            self.delivered += 1
            most -= 1

    def dropped_ranges(self) -> tuple[tuple[int, int], ...]:
        return tuple((seq, seq + 1) for seq in self.dropped)

    def hello(self) -> dict[str, Any]:
        if not self.claims:
            return {}
        ranges = tuple((seq, seq + 1) for seq in sorted(self.ahead))
        return {
            **self.claims,
            "received": self.received,
            "delivered": self.delivered,
            "individual": ranges,
            "dropped": self.dropped_ranges(),
        }


class World(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(LIMITS)
        self.phones = {name: Phone(name) for name in NAMES}
        self.preferences: dict[int, Submission] = {}

    @initialize(there=st.sets(names))
    def register(self, there: set[str]) -> None:
        for name in NAMES:
            self.rig.gateway.admin.register(APP, name, DeviceRecord(registered_at=1), self.rig.now)
            self.rig.gateway.topics.subscribe(APP, name, "news", self.rig.now)
            if name in there:
                self.dial(name, None)
        self.rig.run()

    # Publishers.

    @rule(
        name=st.sampled_from([*NAMES, *NAMES, "topic:news", "app:"]),
        count=st.integers(1, 3),
        priority=st.sampled_from([4, 4, 4, 9]),
        reliability=st.sampled_from([*Reliability, Reliability.EXACTLY_ONCE]),
        after=st.sampled_from([None, None, None, 2]),
        before=st.sampled_from([None, None, 5, 30]),
        replace_key=st.sampled_from([None, None, "k"]),
    )
    def publish(
        self,
        name: str,
        count: int,
        priority: int,
        reliability: Reliability,
        after: int | None,
        before: int | None,
        replace_key: str | None,
    ) -> None:
        prefer = to(
            name,
            b"12345",
            priority=priority,
            reliability=reliability,
            deliver_after=after and self.rig.now + after * SECOND,
            deliver_before=before and self.rig.now + before * SECOND,
            replace_key=replace_key,
        )
        if name in NAMES:
            session = self.rig.gateway.deliveries.named(APP, name)
            count = min(count, LIMITS.open_per_device - len(session.mailbox))
        if count:
            self.preferences.update((key, prefer) for key in self.rig.publish(*[prefer] * count))

    @precondition(lambda self: self.preferences)
    @rule(data=st.data(), replace=st.booleans())
    def withdraw(self, data: st.DataObject, replace: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.preferences)))
        gateway = self.rig.gateway
        if not replace:
            gateway.cancel(APP, key, self.rig.now)
            return
        prefer = to("app:", b"new")
        _, new = gateway.replace(APP, key, "publisher:shop", prefer, self.rig.now)
        if new is not None:
            self.preferences[int(new[:16], 16)] = prefer

    # Devices.

    @rule(name=names, window=st.sampled_from([None, Credit(2, 1000), Credit(0, 0)]))
    def dial(self, name: str, window: Credit | None) -> None:
        phone = self.phones[name]
        claims = phone.hello()
        phone.channel = self.rig.connect(name, run=False, window=window, **claims)
        phone.read = 0

    @rule(name=names, most=st.integers(1, 9), show=st.integers(0, 9))
    def hear(self, name: str, most: int, show: int) -> None:
        phone = self.phones[name]
        frames = self.rig.sent.get(phone.channel, [])[phone.read :][:most]
        phone.read += len(frames)
        for frame in frames:
            phone.take(frame, self.rig.now)
        phone.show(show, self.rig.now)

    @rule(name=names)
    def acknowledge(self, name: str) -> None:
        phone = self.phones[name]
        if phone.channel and phone.read:
            ranges = tuple((seq, seq + 1) for seq in sorted(phone.ahead))
            ack = Ack(phone.received, phone.delivered, ranges)
            frames: list[Frame] = [ack]
            if phone.dropped:
                frames.insert(0, Dropped(phone.dropped_ranges()))
            self.rig.hear(phone.channel, *frames, run=False)
            assert not [d for d in self.rig.disconnected if d.channel == phone.channel]

    @rule(name=names, most=st.integers(1, 4), show=st.integers(0, 4))
    def converse(self, name: str, most: int, show: int) -> None:
        self.rig.run()
        self.hear(name, most, show)
        self.acknowledge(name)

    @rule(name=names)
    def break_link(self, name: str) -> None:
        phone = self.phones[name]
        self.rig.gateway.channel_lost(phone.channel, "broken", self.rig.now)
        phone.channel = 0

    @rule(name=names, really=rarely)
    def forget_everything_but_what_was_shown(self, name: str, really: bool) -> None:
        if really:
            self.break_link(name)
            self.phones[name].claims = {}

    @rule(name=names, paused=st.booleans())
    def pause(self, name: str, paused: bool) -> None:
        self.rig.gateway.channel_paused(self.phones[name].channel, paused, self.rig.now)

    @rule(name=names, really=rarely)
    def remove(self, name: str, really: bool) -> None:
        if not really:
            return
        self.rig.gateway.admin.remove(APP, name, self.rig.now)
        self.rig.gateway.admin.register(APP, name, DeviceRecord(registered_at=1), self.rig.now)
        self.phones[name].channel = 0
        self.phones[name].claims = {}

    # The driver.

    @rule()
    def settle(self) -> None:
        self.rig.settle()

    @rule(flush=st.booleans())
    def take(self, flush: bool) -> None:
        self.rig.take(flush=flush)

    @precondition(lambda self: self.rig.in_flight)
    @rule()
    def write(self) -> None:
        self.rig.write()

    @rule()
    def run_to_rest(self) -> None:
        self.rig.run()

    @rule()
    def fetch(self) -> None:
        self.rig.fetch()

    @rule(seconds=st.sampled_from([0, 1, 3, 10, 60]))
    def wait(self, seconds: int) -> None:
        self.rig.now += seconds * SECOND
        self.rig.settle()

    @rule(written=st.integers(0, 2))
    def crash(self, written: int) -> None:
        for commit in self.rig.in_flight[:written]:
            self.rig.store.apply(commit)
        self.rig.crash()
        for phone in self.phones.values():
            phone.channel = 0

    # The promises.

    @invariant()
    def the_log_and_the_store_agree(self) -> None:
        check_log(self.rig)

    @invariant()
    def what_is_in_memory_adds_up(self) -> None:
        room = self.rig.gateway.deliveries
        for session in room.by_number.values():
            sending = [d for d in session.mailbox.values() if d.state is State.SENDING]
            assert session.lane.flight_bytes == sum(d.item.size for d in sending)
            assert session.lane.leaving == sum(d.seq < 0 for d in sending)
            assert session.lane.sendable <= session.lane.outbound.assigned
            assert all(d in d.item.deliveries for d in session.mailbox.values())
        away = [item.message.key for item in room.items.values() if not item.resident]
        assert len(self.rig.store.messages(away)) == len(away), "a body is nowhere"
        resident = [item for item in room.items.values() if item.resident]
        assert room._resident_bytes == sum(item.size for item in resident)
        assert set(room._resident) == {item.message.key for item in resident}
        deliveries = [d for item in room.items.values() for d in item.deliveries]
        assert len(deliveries) == sum(len(s.mailbox) for s in room.by_number.values())

    @invariant()
    def numbers_follow_acceptance_in_every_lane(self) -> None:
        newest: dict[tuple[object, ...], int] = defaultdict(int)
        for event in events_of(self.rig):
            if event["kind"] == "released" and event["msg"] in self.preferences:
                prefer = self.preferences[event["msg"]]
                if prefer.deliver_after is None and "seq" in event:
                    lane = (event["dev"], event["epoch"], prefer.priority, event["boot_of_dev"])
                    assert event["msg"] > newest[lane], event
                    newest[lane] = event["msg"]

    @invariant()
    def applications_see_everything_once_and_in_order(self) -> None:
        for phone in self.phones.values():
            assert len(set(phone.shown)) == len(phone.shown), phone.shown
            newest: dict[int, int] = defaultdict(int)
            for key in phone.shown:
                prefer = self.preferences[key]
                if (
                    prefer.deliver_after is None
                    and prefer.reliability is not Reliability.BEST_EFFORT
                ):
                    assert key > newest[prefer.priority]
                    newest[prefer.priority] = key

    def teardown(self) -> None:
        """In the end everything has an outcome, and a true one."""
        rig = self.rig
        rig.run()
        for _ in range(4):
            for name in self.phones:
                self.dial(name, None)
                rig.run()
                self.rig.fetch()
                rig.run()
                self.hear(name, 999, 999)
                self.acknowledge(name)
                rig.run()
            rig.pass_time(20 * SECOND)
        rig.pass_time(8 * DAY)
        check_log(rig)
        assert rig.gateway.deliveries.items == {}
        assert not any(row.open for row in rig.store.all_deliveries())
        names_of = {event["dev"]: event for event in rig.events() if event["kind"] == "registered"}
        numbers = {row.device: row.name for row in rig.store.open().devices}
        assert set(numbers.values()) <= set(names_of)
        for row in rig.store.all_deliveries():
            if row.device in numbers:
                shown = row.message in self.phones[numbers[row.device]].shown
                state = State(row.state)
                assert not (shown and state in UNSEEN), row
                assert shown or state is not State.DELIVERED or self.only_received(row.message)

    def only_received(self, key: int) -> bool:
        return self.preferences[key].reliability is Reliability.AT_LEAST_ONCE_DELIVERY


def events_of(rig: Rig) -> list[dict[str, Any]]:
    """The log, each event with the count of its device's registrations so far."""
    lives: Counter[str] = Counter()
    events = []
    for page in rig.store._kept.events:
        for line in page.lines.splitlines():
            event = json.loads(line)
            lives[event.get("dev", "")] += event["kind"] == "registered"
            event["boot_of_dev"] = lives[event.get("dev", "")]
            events.append(event)
    return events


def check_log(rig: Rig) -> None:
    """Conservation: every delivery has one row, one beginning, at most one end, and they agree."""
    story: dict[tuple[int, str, int], list[dict[str, Any]]] = defaultdict(list)
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for n, event in enumerate(events_of(rig)):
        assert event["n"] == n
        if "dev" in event:
            life = (event["dev"], event["boot_of_dev"])
            assert event["dn"] == counts[life], event
            counts[life] += 1
            if "msg" in event:
                story[event["msg"], *life].append(event)
    rows = list(rig.store.all_deliveries())
    assert len(rows) == len(story)
    by_last = {events[-1]["n"]: events for events in story.values()}
    for row in rows:
        events = by_last[row.last_event]
        assert events[0]["kind"] == "accepted"
        assert events[-1]["state"] == State(row.state).name
        assert row.open == (not State(row.state).final)
        assert row.state != State.PENDING or (row.epoch, row.seq) == (-1, -1)
        ends = [e for e in events if State[e["state"]].final]
        assert len(ends) == (0 if row.open else 1)
        assert [e.get("prev", -1) for e in events] == [-1, *(e["n"] for e in events[:-1])]


def test_the_promises_hold_whatever_happens() -> None:
    run_state_machine_as_test(
        World,
        settings=settings(
            max_examples=60,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
