"""A device with limits, under arbitrary schedules: links come and go, time passes, frames are lost
with their link or arrive after everybody has given them up, and the device dies between any two
steps. Books and a gateway of the test's own say whether a limit was broken, a message was lost,
doubled or overtaken, or waits without need.

About `device/preferences/`.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lasthop.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Micros
from lasthop.decision.budgets import BudgetHold, Budgets, Limit, Measure
from lasthop.decision.choice import QueueTerms
from lasthop.decision.contention import Gauge
from lasthop.decision.ledger import BudgetLedger
from lasthop.decision.link_calendar import CalendarEntry, LinkCalendar
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Preferences
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.outgoing import Outgoing
from lasthop.device.preferences.preference_order import PreferenceOrder
from lasthop.device.preferences.sending_preferences import SendingPreferences
from lasthop.device.preferences.waiting_lanes import WaitingLanes
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import Refused
from lasthop.message import key_time
from lasthop.wire.hop.frames import Ack, Credit, Frame, Headers, MessageFrame, Skip, Welcome
from tests.device.peer import INCARNATION, NOW, TERMS

PRICES = {"wifi": 0, "mno": 10, "sat": 700}
DELAYS = {"wifi": 20 * MILLISECOND, "mno": 200 * MILLISECOND, "sat": 2 * SECOND}
LINKS = tuple(Link(name, Tariff(per_unit=PRICES[name]), latency=DELAYS[name]) for name in PRICES)
ALLOWED = {
    "any": tuple(PRICES),
    "home": ("wifi",),
    "dear": ("mno", "sat"),
    "patient": tuple(PRICES),
}
PATIENCE = 10 * MINUTE
QUEUES = (
    QueueTerms("home", links=ALLOWED["home"]),
    QueueTerms("dear", links=ALLOWED["dear"]),
    QueueTerms("patient", max_delay=PATIENCE),
)
CALENDAR = LinkCalendar.of([CalendarEntry("wifi", tuple(range(7)), 0, 24, 0.5)], zone_name="UTC")

limits = st.lists(
    st.builds(
        Limit,
        amount=st.integers(0, 4),
        measure=st.just(Measure.MESSAGES),
        period=st.just(Period.DAY),
        link=st.sampled_from([None, *PRICES]),
        queues=st.sampled_from([(), ("home",), ("dear", "any")]),
    )
    | st.builds(
        Limit,
        amount=st.sampled_from([0, 25, 710, 1500]),
        measure=st.just(Measure.MONEY),
        period=st.just(Period.DAY),
        link=st.sampled_from([None, "mno", "sat"]),
    ),
    max_size=3,
)


class Sent(NamedTuple):
    """A message for others, handed to a link."""

    link: str
    queue: str
    day: int


class Gateway:
    """The other side, as far as numbers go: it acts in order, on each number once."""

    def __init__(self) -> None:
        self.received = 0
        self.early: dict[int, MessageFrame | None] = {}
        self.acted: list[tuple[str, int]] = []
        """Queue and key."""

    def hear(self, frame: Frame) -> None:
        if isinstance(frame, Skip):
            for number in range(frame.first, frame.first + frame.count):
                if number >= self.received:
                    self.early[number] = None
        elif isinstance(frame, MessageFrame):
            assert frame.seq is not None
            if frame.seq >= self.received:
                self.early.setdefault(frame.seq, frame)
        while self.received in self.early:
            taken = self.early.pop(self.received)
            self.received += 1
            if taken is not None:
                assert taken.headers is not None
                self.acted.append((taken.headers.queue or "", taken.key or 0))


class Sending(RuleBasedStateMachine):
    """One device, one gateway, and what is between them."""

    def __init__(self) -> None:
        super().__init__()
        self.now: Micros = NOW
        self.inbox = MemoryInbox()
        self.gateway = Gateway()
        self.session = DeviceSession(TERMS, self.inbox.load())
        self.channels: dict[str, int] = {}
        self.pipes: dict[int, deque[Frame]] = {}
        """What is on its way, also on links that the device has lost."""
        self.count = 0
        self.ledger: Counter[Sent] = Counter()
        self.queued: dict[int, tuple[str, Micros | None]] = {}
        self.refused: set[int] = set()
        self.crashed = False

    @initialize(wanted=limits)
    def begin(self, wanted: list[Limit]) -> None:
        preferences = Preferences(
            links=LINKS, queues=QUEUES, limits=tuple(wanted), calendar=CALENDAR
        )
        self.limits = wanted
        self.session.preferences.prefer(preferences)
        self.meet("mno")

    # The machinery.

    def turn(self) -> None:
        """Decide, make durable, let leave."""
        session = self.session
        session.decide(self.now)
        while (change := session.change()) is not None:
            self.inbox.apply(change)
            session.committed(change.n)
        leaving = dict(session.routed())
        if self.channels:
            spoken = session.frames()
            leaving.setdefault(next(iter(self.channels.values())), [])[:0] = spoken
        labels = {channel: label for label, channel in self.channels.items()}
        for channel, frames in leaving.items():
            for frame in frames:
                self.pipes[channel].append(frame)
                if isinstance(frame, MessageFrame):
                    assert frame.headers is not None
                    queue = frame.headers.queue or ""
                    self.ledger[Sent(labels[channel], queue, self.now // DAY)] += 1
                    deadline = self.queued[frame.key or 0][1]
                    assert deadline is None or self.now < deadline, "it left too late"
        for session_event in session.session_events():
            if isinstance(session_event, Refused):
                assert session_event.refusal.code == "expired"
                self.refused.add(session_event.key)
        if session.stuck:
            self.lose_contact()

    def meet(self, label: str) -> None:
        """A new contact: the gateway hears nothing more from earlier channels."""
        session = self.session
        while (change := session.change()) is not None:
            self.inbox.apply(change)
            session.committed(change.n)
        self.pipes.clear()
        self.gateway.early.clear()
        hello = session.hello()
        welcome = Welcome(
            incarnation=INCARNATION,
            epoch=1,
            resumed=hello.epoch == 1,
            received=self.gateway.received,
            window=Credit(4096, 1 << 30),
        )
        assert session.welcomed(hello, welcome, self.now)
        self.open(label)

    def open(self, label: str) -> None:
        self.count += 1
        self.channels[label] = self.count
        self.pipes[self.count] = deque()
        self.session.link_up(self.count, label)

    def lose_contact(self) -> None:
        self.channels.clear()
        self.session.lost()

    # What happens.

    @rule(
        queue=st.sampled_from(sorted(ALLOWED)),
        within=st.none() | st.sampled_from([500, 5_000, 60_000, 3_600_000]),
        priority=st.sampled_from([1, 4, 9]),
    )
    def send(self, queue: str, within: int | None, priority: int) -> None:
        headers = Headers(to="device:x", queue=queue, deliver_within=within, priority=priority)
        key = self.session.queue(self.now, headers=headers, body=b"hello")
        deadline = None if within is None else key_time(key) + within * MILLISECOND
        self.queued[key] = (f"{queue}{priority}", deadline)
        # Before it is durable the application would say it again: here it is, at once.
        self.turn()

    @rule(label=st.sampled_from(sorted(PRICES)))
    def link_comes(self, label: str) -> None:
        if not self.channels:
            self.meet(label)
        elif label not in self.channels:
            self.open(label)
        self.turn()

    @precondition(lambda self: self.channels)
    @rule(data=st.data())
    def link_goes(self, data: st.DataObject) -> None:
        label = data.draw(st.sampled_from(sorted(self.channels)))
        if len(self.channels) == 1:
            self.lose_contact()
        else:
            self.session.rerouted(self.channels.pop(label))
        self.turn()

    @precondition(lambda self: any(self.pipes.values()))
    @rule(data=st.data(), most=st.integers(1, 5))
    def frames_arrive(self, data: st.DataObject, most: int) -> None:
        """Also from a link that the device knows to be lost, as long as there is no new contact."""
        channel = data.draw(st.sampled_from([c for c, pipe in self.pipes.items() if pipe]))
        for _ in range(min(most, len(self.pipes[channel]))):
            self.gateway.hear(self.pipes[channel].popleft())

    @precondition(lambda self: self.channels)
    @rule()
    def acknowledgement_comes(self) -> None:
        received = self.gateway.received
        self.session.received([Ack(received, received)], self.now)
        self.turn()

    @rule(time=st.sampled_from([10 * MILLISECOND, 2 * SECOND, 5 * MINUTE, HOUR, 9 * HOUR]))
    def time_passes(self, time: Micros) -> None:
        """No further than to what the device wants to be woken for."""
        end = self.now + time
        while (due := self.session.next_expiry()) is not None and due <= end:
            self.now = max(due, self.now)
            self.session.expire(self.now)
            self.turn()
        self.now = end
        self.turn()

    @rule()
    def crash(self) -> None:
        self.crashed = True
        self.inbox = self.inbox.crash()
        self.session = DeviceSession(TERMS, self.inbox.load())
        self.channels.clear()

    # What must be true.

    def counted(self, limit: Limit, day: int) -> int:
        """What was really sent under a limit, by the test's own books."""
        total = 0
        for sent, count in self.ledger.items():
            covers = limit.link in (None, sent.link) and (
                not limit.queues or sent.queue in limit.queues
            )
            if sent.day == day and covers:
                total += count * (PRICES[sent.link] if money(limit) else 1)
        return total

    @invariant()
    def no_limit_is_broken(self) -> None:
        for limit in getattr(self, "limits", ()):
            for day in {sent.day for sent in self.ledger}:
                assert self.counted(limit, day) <= limit.amount, str(limit)

    @invariant()
    def the_devices_books_are_true(self) -> None:
        for meter in self.session.preferences.spending(self.now):
            spent = self.counted(meter.limit, self.now // DAY)
            used = meter.used + meter.held
            assert used >= spent
            assert self.crashed or used == spent

    @invariant()
    def nothing_waits_without_need(self) -> None:
        """What is first in its lane waits for a limit, or for a better link in good time."""
        meters = self.session.preferences.spending(self.now)
        seen: set[str] = set()
        for waiting in self.session.preferences.held_back():
            key = int(waiting.id, 16)
            lane, deadline = self.queued[key]
            if lane in seen or not self.channels:
                continue
            seen.add(lane)
            queue = lane.rstrip("149")
            may = [
                label
                for label in self.channels
                if label in ALLOWED[queue]
                and all(
                    meter.used + meter.held + (PRICES[label] if money(meter.limit) else 1)
                    <= meter.limit.amount
                    for meter in meters
                    if meter.limit.link in (None, label)
                    and (not meter.limit.queues or queue in meter.limit.queues)
                    and (PRICES[label] or not money(meter.limit))
                )
            ]
            if may:
                assert queue == "patient", f"{waiting} though {may} may carry it"
                assert self.now < key_time(key) + PATIENCE
                fastest = min(DELAYS[label] for label in may)
                assert deadline is None or self.now + fastest < deadline

    @invariant()
    def each_is_taken_once_and_in_order(self) -> None:
        keys = [key for _, key in self.gateway.acted]
        assert len(keys) == len(set(keys)), "a message was taken twice"
        lanes: dict[str, int] = {}
        for key in keys:
            lane = self.queued[key][0]
            assert lanes.get(lane, 0) < key, "a message was overtaken in its lane"
            lanes[lane] = key
        assert not self.refused.intersection(keys), "it was called expired, and taken"

    def teardown(self) -> None:
        """Without limits and with a good link, everything arrives that had no deadline."""
        if not hasattr(self, "limits"):
            return
        self.limits = []
        self.session.preferences.prefer(Preferences(links=LINKS))
        self.lose_contact()
        for _ in range(2):
            self.turn()
            if not self.channels:
                self.meet("wifi")
            self.turn()
            for pipe in self.pipes.values():
                while pipe:
                    self.gateway.hear(pipe.popleft())
            self.acknowledgement_comes()
        self.each_is_taken_once_and_in_order()
        taken = {key for _, key in self.gateway.acted}
        missing = {key for key in self.queued if key not in taken} - self.refused
        assert not missing, "a message was lost"
        assert not self.session.waiting


def money(limit: Limit) -> bool:
    return limit.measure is Measure.MONEY


EXAMPLES = int(os.environ.get("LASTHOP_SENDING_EXAMPLES", "60"))
QUIET = list(HealthCheck)


TestSending = Sending.TestCase
TestSending.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=QUIET
)


def no_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Budgets, "refusal", lambda *_, **__: None)


def forget_the_ledger(patch: pytest.MonkeyPatch) -> None:
    """What was spent is not written down."""
    patch.setattr(SendingPreferences, "encode_budgets", lambda self: b"")


def repeat_for_nothing(patch: pytest.MonkeyPatch) -> None:
    """What leaves is not paid for."""
    left = BudgetLedger.left

    def free(
        self: BudgetLedger[int], message: int, now: Micros, *, gauge: Gauge | None
    ) -> BudgetHold:
        hold = left(self, message, now, gauge=gauge)
        for meter in self.budgets._meters:
            meter.used = 0
        return hold

    patch.setattr(BudgetLedger, "left", free)


def take_back_too_early(patch: pytest.MonkeyPatch) -> None:
    """A number is taken back while its message may still arrive."""
    lost = PreferenceOrder.link_lost

    def again(self: PreferenceOrder, channel: int) -> None:
        lost(self, channel)
        self._again.clear()
        self.resumed()

    patch.setattr(PreferenceOrder, "link_lost", again)


def forget_the_lost(patch: pytest.MonkeyPatch) -> None:
    """What was on a lost link is not sent again."""
    patch.setattr(PreferenceOrder, "_offer_again", lambda *_: None)
    patch.setattr(PreferenceOrder, "_decide_anew", lambda *_: None)


def lose_their_places(patch: pytest.MonkeyPatch) -> None:
    """What is taken back waits behind what came later."""

    def put_back(self: WaitingLanes, items: Iterable[Outgoing]) -> None:
        for item in items:
            self.add(item)

    patch.setattr(WaitingLanes, "put_back", put_back)


def never_look_again(patch: pytest.MonkeyPatch) -> None:
    """When a link comes, nobody notices."""
    patch.setattr(PreferenceOrder, "link_changed", lambda self: None)


@pytest.mark.parametrize(
    "plant",
    [
        no_limits,
        forget_the_ledger,
        repeat_for_nothing,
        pytest.param(take_back_too_early, marks=pytest.mark.nightly),
        forget_the_lost,
        pytest.param(lose_their_places, marks=pytest.mark.nightly),
        pytest.param(never_look_again, marks=pytest.mark.nightly),
    ],
)
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, KeyError)):
        run_state_machine_as_test(
            Sending,
            settings=settings(
                max_examples=2000,
                stateful_step_count=40,
                deadline=None,
                suppress_health_check=QUIET,
                database=None,
                phases=[Phase.generate],
                derandomize=True,
                report_multiple_bugs=False,
            ),
        )
